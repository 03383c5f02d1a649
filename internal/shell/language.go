package shell

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// What is known of interpreters: how they are given code, and which calls of theirs do something.

// A language is what is known of an interpreter other than a shell.
type language struct {
	code    string // options that give code, separated by spaces
	letters string // of these, those that end a group of letters, as in perl -ne
	valued  string // options that take the next word
	calls   *callNames
	plain   bool // a call may stand without parentheses
	stops   string
}

// What a call does: it is shown as the shell command that does the same.
const (
	callShell = "sh"    // runs its first argument in a shell
	callExec  = "exec"  // runs its arguments, or the list that is one of them
	callRun   = "run"   // a list is run, a text goes to a shell
	callRm    = "rm"    // removes its arguments
	callMv    = "mv"    // moves its first argument to its second
	callCp    = "cp"    // copies it there
	callWrite = "write" // writes its first argument
	callOpen  = "open"  // writes its first argument if the second says so
	callPath  = "path"  // a method of Path(…): removes what that names
	callSelf  = "self"  // a method of a text: runs it
	callSave  = "save"  // a method of Path(…): writes what that names
	callEval  = "eval"  // runs its first argument as code
	callDoubt = "doubt" // may do anything
	callMode  = "mode"  // changes owner or mode of its first argument
	callKill  = "kill"
	callCd    = "cd" // changes the directory
)

// callNames says what calls do, by their names.
type callNames struct {
	pairs []string // what calls do, and the names of those that do it, separated by spaces
	table lazy.Value[map[string]string]
}

func calls(pairs ...string) *callNames { return &callNames{pairs: pairs} }

// of says what a call does; "" if it does nothing.
func (c *callNames) of(name string) string {
	return c.table.Of(func() map[string]string {
		m := map[string]string{}
		for i := 0; i < len(c.pairs); i += 2 {
			for name := range strings.FieldsSeq(c.pairs[i+1]) {
				m[name] = c.pairs[i]
			}
		}
		return m
	})[name]
}

var python = language{
	code: "-c", letters: "c", valued: "-W -X", stops: "-m",
	calls: calls(
		callShell, "os.system os.popen system popen subprocess.getoutput subprocess.getstatusoutput getoutput getstatusoutput commands.getoutput asyncio.create_subprocess_shell",
		callRun, "subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen Popen check_output check_call pty.spawn call",
		callExec, "os.execl os.execle os.execlp os.execv os.execve os.execvp os.execvpe execvp execv execl execlp os.spawnl os.spawnlp os.spawnv os.spawnvp os.posix_spawn os.posix_spawnp",
		callRm, "shutil.rmtree rmtree os.remove os.unlink os.rmdir os.removedirs unlink rmdir removedirs",
		callMv, "shutil.move os.rename os.replace os.renames", callCp, "shutil.copy shutil.copy2 shutil.copyfile shutil.copytree os.symlink os.link",
		callOpen, "open io.open codecs.open os.open", callWrite, "os.truncate os.mknod", callPath, ".unlink .rmdir", callSave, ".write_text .write_bytes .touch", callEval, "exec eval", callMode, "os.chmod os.chown os.lchown shutil.chown", callKill, "os.kill os.killpg",
		callCd, "os.chdir", callDoubt, "os.fork getattr __import__ importlib.import_module ctypes.CDLL compile globals os.dup2 dup2 runpy.run_path marshal.loads",
	),
}

var perl = language{
	code: "-e -E", letters: "eE", plain: true,
	calls: calls(callExec, "system exec", callRm, "unlink rmdir rmtree remove_tree", callMv, "rename move", callCp, "copy symlink link", callOpen, "open sysopen", callWrite, "truncate", callEval, "eval", callMode, "chmod chown", callKill, "kill", callShell, "readpipe", callCd, "chdir", callDoubt, "syscall fork"),
}

var ruby = language{
	code: "-e", letters: "e", valued: "-r -I", plain: true,
	calls: calls(callExec, "system exec spawn Kernel.system Kernel.exec Process.spawn Open3.capture2 Open3.capture3 Open3.popen3 Open3.capture2e IO.popen", callShell, "PTY.spawn",
		callRm, "FileUtils.rm_rf FileUtils.rm_r FileUtils.rm FileUtils.rm_f FileUtils.remove_dir FileUtils.remove_entry FileUtils.remove_entry_secure FileUtils.rmtree FileUtils.rmdir rm_rf rm_r File.delete File.unlink Dir.rmdir Dir.delete Dir.unlink",
		callMv, "FileUtils.mv FileUtils.move File.rename", callCp, "FileUtils.cp FileUtils.cp_r FileUtils.copy FileUtils.ln_s FileUtils.ln_sf", callWrite, "File.write IO.write File.truncate FileUtils.touch IO.binwrite File.binwrite", callOpen, "File.open File.new open",
		callEval, "eval instance_eval", callPath, ".rmtree", callKill, "Process.kill", callMode, "FileUtils.chmod FileUtils.chmod_R FileUtils.chown FileUtils.chown_R File.chmod File.chown", callCd, "Dir.chdir FileUtils.cd", callDoubt, "send public_send __send__ syscall fork"),
}

var node = language{
	code: "-e --eval -p --print -pe", valued: "-r --require --import", stops: "",
	calls: calls(callShell, "exec execSync child_process.exec child_process.execSync .execSync cp.exec cp.execSync", callExec, "spawn spawnSync execFile execFileSync child_process.spawn child_process.spawnSync child_process.execFile child_process.execFileSync .spawnSync .spawn .execFileSync .execFile Bun.spawn Bun.spawnSync fork",
		callRm, "fs.rmSync fs.rm fs.rmdirSync fs.rmdir fs.unlinkSync fs.unlink .rmSync .rmdirSync .unlinkSync rmSync unlinkSync rmdirSync Deno.remove Deno.removeSync .rm .rmdir .unlink rimraf rimraf.sync",
		callMv, "fs.renameSync fs.rename .renameSync Deno.rename", callCp, "fs.copyFileSync fs.cpSync fs.copyFile .copyFileSync .cpSync fs.symlinkSync",
		callWrite, "fs.writeFileSync fs.writeFile fs.appendFileSync fs.appendFile fs.createWriteStream fs.truncateSync .writeFileSync .writeFile .appendFileSync .createWriteStream .truncateSync writeFileSync Deno.writeTextFileSync Deno.writeTextFile Bun.write", callOpen, "fs.openSync .openSync",
		callEval, "eval Function vm.runInThisContext vm.runInNewContext", callKill, "process.kill", callMode, "fs.chmodSync fs.chownSync .chmodSync .chownSync", callCd, "process.chdir", callDoubt, "process.binding"),
}

var php = language{
	code: "-r --run", letters: "r", valued: "-d -c",
	calls: calls(callShell, "system exec shell_exec passthru popen proc_open", callExec, "pcntl_exec", callRm, "unlink rmdir", callMv, "rename", callCp, "copy symlink link", callWrite, "file_put_contents touch", callOpen, "fopen", callEval, "eval assert create_function", callMode, "chmod chown chgrp", callKill, "posix_kill", callCd, "chdir", callDoubt, "call_user_func call_user_func_array array_map array_walk"),
}

var lua = language{
	code: "-e", calls: calls(callShell, "os.execute io.popen", callRm, "os.remove", callMv, "os.rename", callOpen, "io.open", callEval, "load loadstring dostring"), plain: true,
}

var rlang = language{code: "-e", calls: calls(callShell, "system shell", callExec, "system2", callRm, "unlink file.remove", callMv, "file.rename", callCp, "file.copy", callWrite, "writeLines write file.create", callEval, "parse")}

var julia = language{code: "-e -E --eval", calls: calls(callRm, "rm Base.rm", callMv, "mv", callCp, "cp", callOpen, "open", callWrite, "write", callEval, "include_string", callDoubt, "eval ccall")}

// javax is the JavaScript of a Java machine.
var javax = language{
	code: "-e", valued: "-l -f -cp -classpath -encoding -scripting",
	calls: calls(callShell, "exec .exec system $EXEC", callRm, "rm rmdir del .delete .deleteIfExists", callMv, "mv", callCp, "cp", callEval, "eval", callDoubt, "load ProcessBuilder java.lang.ProcessBuilder"),
}

// java is what a Java machine is told by jshell, groovy, kotlin or scala.
var java = language{
	code: "-e --expression", letters: "e", valued: "-cp -classpath --classpath --class-path -c --encoding -D --startup --feedback --execution --module-path --add-modules -d --define",
	calls: calls(
		callRun, "exec .exec Runtime.getRuntime.exec", callSelf, ".execute .executeAndReturn", callRm, "Files.delete Files.deleteIfExists", callMv, "Files.move", callCp, "Files.copy Files.createSymbolicLink Files.createLink",
		callWrite, "Files.write Files.writeString Files.newBufferedWriter Files.newOutputStream FileWriter FileOutputStream PrintWriter RandomAccessFile java.io.FileWriter java.io.FileOutputStream",
		callPath, ".delete .deleteOnExit .deleteDir .deleteRecursively", callSave, ".setText .withWriter .newWriter .write .append .writeText .appendText .createNewFile", callMode, "Files.setPosixFilePermissions Files.setOwner",
		callEval, "evaluate Eval.me", callDoubt, "ProcessBuilder java.lang.ProcessBuilder ProcessBuilder.startPipeline System.load System.loadLibrary Class.forName GroovyShell GroovyClassLoader .destroyForcibly .lines .process Process",
	),
}

var osascript = language{code: "-e", calls: calls(callShell, "script"), plain: true} // do shell script "…"

var languages = map[string]*language{
	"perl": &perl, "ruby": &ruby, "irb": &ruby, "jruby": &ruby, "node": &node, "nodejs": &node, "bun": &node, "deno": &node, "php": &php, "lua": &lua, "luajit": &lua, "Rscript": &rlang, "R": &rlang, "julia": &julia, "osascript": &osascript, "pypy": &python, "pypy3": &python, "ipython": &python, "tsx": &node, "ts-node": &node, "babel-node": &node, "jrunscript": &javax, "jjs": &javax, "groovy": &java, "jshell": &java, "kotlin": &java, "scala": &java, "scala3": &java,
}

var pythonName = lazy.Regexp(`^python[0-9.]*$`)

func languageOf(name string) *language {
	if l := languages[name]; l != nil {
		return l
	}
	if strings.HasPrefix(name, "p") && pythonName.Get().MatchString(name) {
		return &python
	}
	if rest := strings.TrimRight(name, "0123456789."); rest != name { // perl5.36
		switch rest {
		case "perl", "ruby", "php", "lua", "node":
			return languages[rest]
		}
	}
	return nil
}

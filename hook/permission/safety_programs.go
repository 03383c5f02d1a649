package permission

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
	"github.com/pawl-dev/pawl/internal/shell"
)

// A rule judges one program by what its words make it do.
type rule func(j *examiner, c *shell.Command)

// program judges one command.
func (j *examiner) program(c *shell.Command) {
	if helps(c) {
		return
	}
	if r := rules()[c.Name]; r != nil {
		r(j, c)
		return
	}
	if strings.HasPrefix(c.Name, "mkfs") || strings.HasPrefix(c.Name, "newfs") || strings.HasPrefix(c.Name, "fsck") {
		format(j, c)
	}
}

// rules are the programs that can do harm, with what they do. Programs that aren't here pass.
func rules() map[string]rule { return ruleTable.Of(makeRules) }

var ruleTable lazy.Value[map[string]rule]

func makeRules() map[string]rule {
	all := map[string]rule{
		"mv": move, "cp": copies, "ln": link, "install": installs, "ginstall": installs, "rsync": syncs, "scp": secureCopy, "dd": convert, "tee": operands(overwrites, ""), "truncate": operands(overwrites, "-s -r --size --reference"),
		"fallocate": operands(overwrites, "-l -o --length --offset"), "touch": operands(creates, "-d -t -r --date --reference"), "mkdir": operands(creates, "-m --mode"), "rmdir": operands(creates, ""), "mkfifo": operands(creates, "-m"), "mknod": operands(creates, "-m"),
		"chmod": mode, "chown": mode, "chgrp": mode, "chattr": mode, "setfacl": facl, "chcon": mode, "chflags": mode, "xattr": nil,
		"sed": inPlace, "gsed": inPlace, "perl": perlInPlace, "ruby": perlInPlace, "curl": curl, "wget": wget, "tar": tar, "gtar": tar, "bsdtar": tar, "unzip": unzip, "7z": sevenZip, "7za": sevenZip, "zip": zips,
		"gzip": compress, "gunzip": compress, "bzip2": compress, "bunzip2": compress, "xz": compress, "unxz": compress, "zstd": compress, "unzstd": compress, "lz4": compress, "patch": patch, "sort": output("-o --output"), "openssl": output("-out -keyout"), "gcc": output("-o"), "cc": output("-o"), "clang": output("-o"), "g++": output("-o"), "c++": output("-o"), "rustc": output("-o --out-dir"), "strace": output("-o"), "pandoc": output("-o --output"), "gpg": gpg, "ssh-keygen": keygen,
		"go": goTool, "git": gits, "fdisk": disk("-l --list"), "sfdisk": disk("-l --list -d --dump"), "gdisk": disk("-l"), "sgdisk": disk("-p --print"), "cfdisk": disk(""), "parted": parted, "wipefs": wipefs, "mkswap": format, "blkdiscard": format, "badblocks": badblocks, "cryptsetup": crypt, "hdparm": drive, "nvme": drive, "sg_format": format, "tune2fs": format, "resize2fs": format, "e2fsck": format, "debugfs": format,
		"lvremove": never("removes volumes"), "vgremove": never("removes volumes"), "pvremove": never("removes volumes"), "zpool": verbDenied("destroy labelclear", "zpool"), "zfs": verbDenied("destroy rollback", "zfs"), "mdadm": asks("changes disks"), "diskutil": verbDenied("eraseDisk eraseVolume erasedisk erasevolume reformat partitionDisk zeroDisk randomDisk secureErase", "diskutil"), "mount": mount, "umount": asks("takes a file system away"), "swapoff": asks("switches memory off"), "swapon": asks("changes memory"), "losetup": asks("changes devices"),
		"shutdown": shutdown, "reboot": never("restarts the machine"), "halt": never("stops the machine"), "poweroff": never("switches the machine off"), "kexec": never("starts another kernel"), "init": runlevel, "telinit": runlevel, "systemctl": systemctl, "loginctl": verbDenied("poweroff reboot halt suspend hibernate kill-user terminate-user kill-session terminate-session terminate-seat", "loginctl"), "pm-suspend": never("suspends the machine"), "rtcwake": never("suspends the machine"), "service": service, "launchctl": asks("changes services"),
		"kill": kill, "pkill": pkill, "killall": killall, "killall5": never("ends all processes"), "skill": pkill, "snice": nil, "slay": never("ends all processes of a user"),
		"userdel": never("removes an account"), "deluser": never("removes an account"), "groupdel": never("removes a group"), "delgroup": never("removes a group"), "usermod": never("changes an account"), "groupmod": never("changes a group"), "useradd": never("makes an account"), "adduser": never("makes an account"), "groupadd": never("makes a group"), "addgroup": never("makes a group"), "passwd": passwd, "chpasswd": never("changes passwords"), "chsh": never("changes an account"), "chfn": never("changes an account"), "vipw": never("changes accounts"), "vigr": never("changes accounts"), "gpasswd": never("changes a group"), "visudo": never("changes privileges"), "chage": chage, "dscl": never("changes accounts"), "sysadminctl": never("changes accounts"), "pwconv": never("changes accounts"),
		"crontab": crontab, "at": asks("runs something later"), "batch": asks("runs something later"), "atrm": asks("cancels jobs"),
		"iptables": firewall, "ip6tables": firewall, "nft": nft, "ufw": ufw, "firewall-cmd": asksUnless("--list --state --get", "changes the firewall"), "ip": ip, "ifconfig": ifconfig, "route": ifconfig, "nmcli": nmcli, "sysctl": sysctl, "modprobe": asks("changes the kernel"), "insmod": asks("changes the kernel"), "rmmod": asks("changes the kernel"), "setenforce": asks("changes security settings"), "hostnamectl": asksUnless("status", "changes the machine's name"), "setcap": asks("gives privileges"), "ipcrm": asks("removes what processes share"), "date": date,
		"sudo": privilege, "doas": privilege, "su": privilege, "pkexec": privilege, "runuser": privilege, "sg": privilege, "newgrp": privilege, "chroot": privilege, "nsenter": privilege, "unshare": privilege, "setpriv": privilege, "capsh": privilege, "systemd-run": privilege, "run0": privilege,
		"docker": docker, "podman": docker, "nerdctl": docker, "docker-compose": compose, "kubectl": kubectl, "helm": verbAsks("uninstall delete rollback push", "helm"), "terraform": terraform, "tofu": terraform, "aws": cloud, "gcloud": cloud, "az": cloud, "gsutil": cloud, "doctl": cloud, "flyctl": cloud, "fly": cloud, "heroku": cloud, "vercel": cloud, "netlify": cloud, "firebase": cloud, "wrangler": cloud, "s3cmd": cloud, "rclone": cloud, "mc": cloud,
		"npm": publish, "pnpm": publish, "yarn": publish, "bun": publish, "cargo": publish, "poetry": publish, "uv": publish, "gem": publish, "twine": publish, "mvn": publish, "gradle": publish, "goreleaser": publish, "vsce": publish, "dotnet": publish, "flit": publish, "hatch": publish, "pod": publish, "composer": nil, "gh": gh, "glab": gh,
		"apt": packages, "apt-get": packages, "aptitude": packages, "yum": packages, "dnf": packages, "pacman": packages, "zypper": packages, "apk": packages, "dpkg": packages, "rpm": packages, "snap": packages, "brew": brew, "flatpak": packages,
		"adb": phone, "fastboot": phone, "vagrant": verbAsks("destroy", "vagrant"), "lxc": verbAsks("delete", "lxc"), "incus": verbAsks("delete", "incus"), "multipass": verbAsks("delete purge", "multipass"), "virsh": verbAsks("destroy undefine vol-delete pool-delete", "virsh"),
		"psql": database, "mysql": database, "mariadb": database, "mongosh": database, "mongo": database, "redis-cli": database, "dropdb": asks("removes a database"), "dropuser": asks("removes a user"), "mysqladmin": database, "security": verbDenied("delete-keychain delete-certificate delete-generic-password delete-internet-password", "security"), "defaults": verbAsks("write delete", "defaults"), "tmutil": asks("changes backups"),
		"dbus-send": bus, "busctl": bus, "gdbus": bus, "cmake": cmake, "pwsh": asks("runs what is not read here"), "powershell": asks("runs what is not read here"), "cpio": cpio,
		"enable": asksUnless("-p -a", "loads code into the shell"), "hash": hash, "bind": asks("changes the shell"), "sftp": sftp, "lftp": ftp, "ftp": ftp, "history": nil, "sponge": operands(overwrites, ""), "logsave": logsave, "vim": edit, "vi": edit, "nvim": edit, "ex": edit, "ed": edit, "nano": edit, "pico": edit, "micro": edit, "joe": edit, "mcedit": edit, "fuser": fuser, "nc": nil, "csplit": nil, "apachectl": asks("changes services"), "nginx": nil, "logrotate": asks("changes logs"), "journalctl": journal, "xargs": nil, "fish": nil,
	}
	for _, name := range []string{"rm", "grm", "unlink", "shred", "srm", "wipe", "scrub", "rimraf", "del-cli", "trash", "trash-put", "rip", "gio"} {
		all[name] = remove
	}
	for name, r := range all {
		if r == nil {
			delete(all, name)
		}
	}
	return all
}

func operands(what effect, valued string) rule {
	return func(j *examiner, c *shell.Command) { j.on(c, what, parse(c, valued).operands...) }
}

func output(names string) rule {
	return func(j *examiner, c *shell.Command) { j.onOutput(parse(c, names), strings.Fields(names)...) }
}

func never(why string) rule {
	return func(j *examiner, c *shell.Command) { j.deny("%s %s", c.Name, why) }
}

func asks(why string) rule {
	return func(j *examiner, c *shell.Command) {
		if len(c.Args) > 0 || c.Name == "batch" {
			j.ask("%s %s", c.Name, why)
		}
	}
}

func asksUnless(harmless, why string) rule {
	return func(j *examiner, c *shell.Command) {
		for _, a := range c.Args {
			for h := range strings.FieldsSeq(harmless) {
				if strings.HasPrefix(a.Text, h) {
					return
				}
			}
		}
		if len(c.Args) > 0 {
			j.ask("%s %s", c.Name, why)
		}
	}
}

func verbDenied(words, name string) rule {
	return func(j *examiner, c *shell.Command) {
		if v := verb(c, words); v != "" {
			j.deny("%s %s does lasting damage", name, v)
		}
	}
}

func verbAsks(words, name string) rule {
	return func(j *examiner, c *shell.Command) {
		if v := verb(c, words); v != "" {
			j.ask("%s %s changes what others rely on", name, v)
		}
	}
}

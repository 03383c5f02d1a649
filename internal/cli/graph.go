package cli

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
)

// graphEngine makes graphs of files.
var graphEngine = fileEngine{"graph", func(file string, models opener, replay bool) (maker, error) {
	d, err := graph.Load(file)
	if err != nil {
		return nil, err
	}
	return func(cfg loop.Config) (engine.Engine, error) {
		return graph.Compile(d, graph.Kinds{Loop: cfg, Models: models, Absent: replay})
	}, nil
}}

func graphCommand(s streams, p Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "graph",
		Short:   "Check, draw and run graphs of nodes",
		Example: "  pawl graph validate flow.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage("graph what? validate FILE, draw FILE, or run FILE PROMPT")
		},
	}
	cmd.AddCommand(graphValidateCommand(s), graphDrawCommand(s), graphRunCommand(s, p))
	return cmd
}

func graphValidateCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Say what is wrong with graphs",
		Long: `Prints a line for each problem: where it is (as in nodes[3].config.prompt), what is wrong, and what would be right; with several files, the file
stands before it. Lines that begin with "warning:" are about what may be a mistake; they don't count. Whether there are the tools, agents and models
that a graph names is looked at when it runs. The exit code is 1 when there is a problem, and 2 when a file can't be read. A graph without problems and
warnings prints nothing.`,
		Example: "  pawl graph validate flow.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("name a graph, such as flow.yaml")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			wrong := false
			for _, file := range args {
				found, err := graphProblems(file)
				if err != nil {
					return wrongUse(err)
				}
				var lines strings.Builder
				for _, p := range found {
					if p.Warning {
						lines.WriteString("warning: ")
					}
					if wrong = wrong || !p.Warning; len(args) > 1 {
						lines.WriteString(clean(file) + ": ")
					}
					lines.WriteString(clean(p.String()) + "\n")
				}
				if _, err := io.WriteString(s.out, lines.String()); err != nil {
					return err
				}
			}
			if wrong {
				return &exitError{exitFailed, nil}
			}
			return nil
		},
	}
}

// graphProblems is what is wrong with the graph of a file, whatever is here to run it with.
func graphProblems(file string) ([]graph.Problem, error) {
	d, err := graph.Load(file)
	if err == nil {
		var g *graph.Engine
		if g, err = graph.Compile(d, graph.Kinds{Absent: true}); err == nil {
			return g.Warnings(), nil
		}
	}
	var all *graph.Error
	if errors.As(err, &all) {
		return all.Problems, nil
	}
	return nil, err
}

func graphDrawCommand(s streams) *cobra.Command {
	dot := false
	cmd := &cobra.Command{
		Use:     "draw FILE",
		Short:   "Draw a graph, as Mermaid or for Graphviz",
		Long:    `Prints the graph as a Mermaid flowchart, or with --dot as Graphviz reads it. It need not be free of problems, but it has to be read.`,
		Example: "  pawl graph draw flow.yaml\n  pawl graph draw --dot flow.yaml | dot -Tsvg >flow.svg",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("want one file, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := graph.Load(args[0])
			if err != nil {
				return wrongUse(err)
			}
			drawn := d.Mermaid()
			if dot {
				drawn = d.Dot()
			}
			_, err = io.WriteString(s.out, printable(drawn))
			return err
		},
	}
	cmd.Flags().BoolVar(&dot, "dot", false, "draw for Graphviz")
	return cmd
}

func graphRunCommand(s streams, p Program) *cobra.Command {
	c := common{program: p}
	var files, vars []string
	cmd := &cobra.Command{
		Use:   "run [flags] FILE [PROMPT]",
		Short: "Run a graph, from a prompt to its answer",
		Long: `Is pawl run with --engine graph:FILE: the same project, tools, permissions, sandbox and journal, and the same flags; see pawl run. Without a prompt it is "Go."; the prompt -
is read from standard input. What the graph's vars have at the beginning is said by --var.`,
		Example: `  pawl graph run flow.yaml "Write about foxes."
  pawl graph run --var topic=foxes flow.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usage("want a file, and a prompt in quotes if there is one, got %d arguments", len(args))
			}
			return nil
		},
	}
	c.add(cmd)
	cmd.Flags().Lookup("engine").Hidden = true
	cmd.Flags().StringArrayVar(&files, "file", nil, "attach an image or a document from `PATH` (repeat)")
	cmd.Flags().StringArrayVar(&vars, "var", nil, "set a var to a text: `NAME=TEXT` (repeat)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("engine") {
			return usage("--engine: the engine is the graph")
		}
		inputs, err := inputsOf(vars)
		if err != nil {
			return err
		}
		c.begins, c.engine = true, "graph:"+args[0]
		prompt := "Go."
		if len(args) > 1 {
			prompt = args[1]
		}
		code, err := run(cmd.Context(), s, c, prompt, files, inputs)
		if code == exitCompleted && err == nil {
			return nil
		}
		return &exitError{code, err}
	}
	return cmd
}

// inputsOf are vars from a command line.
func inputsOf(vars []string) (map[string]any, error) {
	var inputs map[string]any
	for _, v := range vars {
		name, text, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, usage("--var %q: want NAME=TEXT", v)
		}
		if inputs == nil {
			inputs = map[string]any{}
		}
		if _, twice := inputs[name]; twice {
			return nil, usage("--var %s: it is there twice", name)
		}
		inputs[name] = text
	}
	return inputs, nil
}

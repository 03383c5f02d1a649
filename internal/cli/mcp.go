package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/tool/mcp"
)

func mcpCommand(s streams, p Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "MCP: serve the project's agent; list servers, log in to one",
		Example: `  pawl mcp serve
  pawl mcp list
  pawl mcp login --url https://example.com/mcp wiki
  pawl run --mcp wiki=https://example.com/mcp --allow mcp__wiki "What does the wiki say about releases?"`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage("mcp what? list, login NAME or serve")
		},
	}
	cmd.AddCommand(mcpServe(s, p), mcpList(s), mcpLogin(s))
	return cmd
}

func mcpLogin(s streams) *cobra.Command {
	var server mcp.Server
	var noBrowser bool
	var c mcpConfig
	cmd := &cobra.Command{
		Use:   "login [--url URL] NAME",
		Short: "Log in to an MCP server (OAuth)",
		Long: `Shows the address at which you log in, opens it in a browser where there is one, and waits until you are done. The tokens are kept
in a file that only you can read, for runs that have the server. It is the one of that name in the settings, or the one at --url, for runs with --mcp NAME=URL. A secret of a client of your own is read from PAWL_MCP_CLIENT_SECRET.`,
		Example: "  pawl mcp login wiki\n  pawl mcp login --url https://example.com/mcp wiki",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("want the name of one server, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			server.Name, server.OAuth.ClientSecret = args[0], os.Getenv("PAWL_MCP_CLIENT_SECRET")
			server, err := mcpConfigured(cmd.Context(), c, server)
			if err != nil {
				return err
			}
			err = mcp.Login(cmd.Context(), server, mcp.Options{Open: func(ctx context.Context, url string) error {
				if _, err := fmt.Fprintf(s.err, "Log in here:\n  %s\n", printable(url)); err != nil {
					return err
				}
				if !noBrowser {
					browse(ctx, url)
				}
				return nil
			}})
			if err != nil {
				return wrongUse(err)
			}
			_, err = fmt.Fprintf(s.err, "logged in to %s\n", server.Name)
			return err
		},
	}
	c.add(cmd)
	f := cmd.Flags()
	f.StringVar(&server.URL, "url", "", "the server's `URL`; without it, that of the settings")
	f.StringVar(&server.OAuth.ClientID, "client-id", "", "the `ID` of a client that is registered with the server; without it one registers by itself")
	f.BoolVar(&noBrowser, "no-browser", false, "only show the address")
	return cmd
}

// browse opens a browser where there is one; the address is shown in any case.
func browse(ctx context.Context, url string) {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	if path, err := exec.LookPath(name); err == nil {
		_ = exec.CommandContext(ctx, path, args...).Run() //nolint:gosec // a web address, checked
	}
}

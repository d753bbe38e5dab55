package cli

import (
	"github.com/spf13/cobra"

	"felix.dev/felix/cmd/felix/internal/settings"
	"felix.dev/felix/cmd/felix/internal/term"
)

// shownSetting is a setting as `felix context` prints it.
type shownSetting struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	From  string `json:"from,omitempty"`
}

func (a *app) contextCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Show which broker the commands would talk to, and why",
		Long: `Show the settings that pub, sub, stream and subs would use, and where each one comes from.

Each is looked for on its own: a flag, then an environment variable, then the context file.
The context file is the one of --context or FELIX_CONTEXT, else ` + settings.DevContext + `, which
'felix serve --dev' writes, else felix/context.yaml in the user's configuration folder.`,
		Example: `  felix context
  felix context --show-token -o json
  FELIX_ADDR=10.0.0.7:5000 felix context`,
		Args: args(cobra.NoArgs),
	}
	a.conn.Register(cmd.Flags())
	output := outputFlag(cmd)
	showToken := cmd.Flags().Bool("show-token", false, "print the token instead of dots")
	cmd.RunE = func(*cobra.Command, []string) error {
		s, err := a.resolve()
		if err != nil {
			return err
		}
		token := s.Token.Value
		if token != "" && !*showToken {
			token = "(hidden)"
		}
		shown := []shownSetting{
			{"addr", s.Addr.Value, s.Addr.From},
			{"admin", s.AdminAddr.Value, s.AdminAddr.From},
			{"tenant", s.Tenant.Value, s.Tenant.From},
			{"token", token, s.Token.From},
			{"ca_file", s.CAFile.Value, s.CAFile.From},
		}
		return printAs(a.env.Stdout, output.value, shown, func() *term.Table {
			t := term.NewTable("SETTING", "VALUE", "FROM")
			for _, v := range shown {
				if v.From == "" {
					v.Value, v.From = "-", "not set"
				}
				t.Row(v.Name, v.Value, v.From)
			}
			return t
		})
	}
	return cmd
}

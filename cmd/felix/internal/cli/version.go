package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/cmd/felix/internal/term"
)

type versionInfo struct {
	Version  string `json:"version"`
	Protocol uint16 `json:"protocol"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Say which version this is",
		Example: "  felix version\n  felix version -o json",
		Args:    args(cobra.NoArgs),
	}
	output := outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		v := versionInfo{a.env.Version, wire.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		return printAs(a.env.Stdout, output.value, v, func() *term.Table {
			return term.NewTable(fmt.Sprintf("felix %s (protocol %d, %s, %s)", v.Version, v.Protocol, v.Go, v.Platform))
		})
	}
	return cmd
}

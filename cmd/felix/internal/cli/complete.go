package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// completeWithin bounds how long somebody who pressed the tab key waits.
const completeWithin = 2 * time.Second

// completes makes the shell complete a command's first arguments, up to most, with the names of streams. Without a
// broker there are none to offer, which is no error.
func (a *app) completes(cmd *cobra.Command, most int) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var names []string
		_ = a.ask(cmd.Context(), func(ctx context.Context, q asking) error { // see above
			ctx, cancel := context.WithTimeout(ctx, completeWithin)
			defer cancel()
			streams, err := q.Streams(ctx, q.tenant, "")
			for _, s := range streams {
				names = append(names, showStream(s.Spec.Namespace, s.Spec.Stream))
			}
			return err
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

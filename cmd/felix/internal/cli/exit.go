package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client"
	"felix.dev/felix/cmd/felix/internal/bench"
	"felix.dev/felix/cmd/felix/internal/settings"
)

// Exit statuses; doc.go says what they mean.
const (
	exitOK         = 0
	exitFailure    = 1
	exitUsage      = 2
	exitRepairable = 3
	exitRefused    = 4
)

// usageError is a command line that makes no sense. Trying again does not help.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// statusError ends the process with a status of its own. What there is to say has been said.
type statusError struct{ status int }

func (e *statusError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

// report says what went wrong, in one line, and returns the exit status.
func report(w io.Writer, cmd *cobra.Command, err error) int {
	var status *statusError
	var usage *usageError
	var missing *settings.MissingError
	var load *bench.UsageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return status.status
	case errors.As(err, &missing):
		fmt.Fprintf(w, "felix: %s\n", oneLine(err))
		return exitUsage
	case errors.As(err, &usage), errors.As(err, &load):
		fmt.Fprintf(w, "felix: %s; see '%s --help'\n", oneLine(err), cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintln(w, "felix: "+describe(err))
	return exitFailure
}

// interruptedError is what somebody stopped before it was done, and what there is to know about that.
type interruptedError struct{ text string }

func (e *interruptedError) Error() string        { return e.text }
func (e *interruptedError) Is(target error) bool { return target == context.Canceled }

// interrupted makes one of an error that is there because ctx was cancelled: what gave up first, and how it says so,
// is of no use to whoever pressed Ctrl-C.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil || err == nil {
		return err
	}
	var said *interruptedError
	var status *statusError
	switch {
	case errors.As(err, &said), errors.As(err, &status):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.Cause(ctx)):
		return &interruptedError{"interrupted"}
	}
	return err
}

// describe is an error in one line, with what it means for whoever would try again.
func describe(err error) string {
	text := oneLine(err)
	if v := verdict(err); v != "" {
		text += "; " + v
	}
	return text
}

// oneLine joins the lines of an error (errors.Join makes several) and takes out of it what only says how the program
// is made.
func oneLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	for i, line := range lines {
		line = noise.ReplaceAllString(strings.TrimSpace(line), "")
		for again := packages.ReplaceAllString(line, "$1"); again != line; again = packages.ReplaceAllString(line, "$1") {
			line = again
		}
		lines[i] = doubled.ReplaceAllString(line, "$1")
	}
	return strings.Join(lines, "; ")
}

var (
	// packages stand before the messages of their errors.
	packages = regexp.MustCompile(`(^|: )(?:felix|broker|admin|server|catalog|stream|auth|seglog|udp|egress|bench): `)
	// noise is how a YAML file is read.
	noise = regexp.MustCompile(`error (?:unmarshaling JSON: while decoding JSON|converting YAML to JSON): (?:json: |yaml: )?`)
	// doubled is an address of a list of one that is a list of one.
	doubled = regexp.MustCompile(`(no broker can be reached: )(?:\S+: )no broker can be reached: `)
)

// retryable is implemented by errors that know whether trying again helps.
type retryable interface{ Retryable() bool }

// verdict says whether trying again helps.
func verdict(err error) string {
	const helps, helpsNot = "retrying helps", "retrying does not help"
	var (
		lost        *client.LostError
		lagged      *client.LaggedError
		cursor      *client.CursorError
		certificate x509.UnknownAuthorityError
		hostname    x509.HostnameError
		network     net.Error
		asked       *admin.Error
		refused     *client.Error
		knows       retryable
		lookup      *net.DNSError
		file        *fs.PathError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case errors.As(err, &certificate), errors.As(err, &hostname):
		return helpsNot + ", another --ca-file or --server-name does"
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return helps + " once the name is known, and so does another address"
	case errors.As(err, &cursor):
		return fmt.Sprintf("%s, --from %d does", helpsNot, cursor.Available)
	case errors.As(err, &lagged):
		return fmt.Sprintf("%s: --from %d goes on where it ended", helps, lagged.ResumeFrom)
	case errors.As(err, &lost) && lost.Resumable:
		return fmt.Sprintf("%s: --from %d goes on where it ended", helps, lost.Position)
	case errors.As(err, &refused) && refused.Code == wire.CodeNotFound:
		return helps + " once there is such a stream"
	case errors.Is(err, client.ErrOutcomeUnknown):
		return "it may or may not be stored; sending it again may repeat it"
	case errors.Is(err, client.ErrRetryable), errors.Is(err, context.DeadlineExceeded):
		return helps
	case errors.As(err, &knows):
		if knows.Retryable() {
			return helps
		}
		return helpsNot
	case errors.As(err, &asked) && strings.Contains(asked.Message, "HTTP request to an HTTPS server"):
		return helpsNot + ", --admin https://HOST:PORT does"
	case errors.As(err, &asked):
		switch asked.Retry {
		case admin.RetryNow, admin.RetryAfter:
			return helps
		case admin.RetryOutcomeUnknown:
			return "it may or may not have been done; retrying is safe"
		case admin.RetryFatal:
		}
		return helpsNot
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return helps + " once there is room"
	case errors.Is(err, broker.ErrLocked):
		return helps + " once that broker has ended"
	case errors.Is(err, syscall.EADDRINUSE):
		return helps + " once the address is free, and so does another --listen or --admin"
	case errors.Is(err, http.ErrSchemeMismatch):
		return helpsNot + ", --admin http://HOST:PORT does"
	case errors.As(err, &file) && errors.Is(err, fs.ErrPermission):
		return helpsNot + ", another owner or mode of the file does"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return helps + " once the broker is there"
	case errors.As(err, &network) && network.Timeout():
		return helps
	}
	return helpsNot
}

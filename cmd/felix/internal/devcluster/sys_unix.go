//go:build unix && !linux

package devcluster

import "syscall"

// ownGroup keeps a terminal's Ctrl-C from the brokers, which are asked to end in their turn.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

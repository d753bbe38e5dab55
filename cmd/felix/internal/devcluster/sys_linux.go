package devcluster

import "syscall"

// ownGroup keeps a terminal's Ctrl-C from the brokers, which are asked to end in their turn, and has the system ask them
// when this process is gone without having done so.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

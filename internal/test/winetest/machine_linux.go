package winetest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
)

// The paths inside a machine, and the unprivileged user of its programs. For root, Wine would check no file permissions.
const (
	program = "/usr/bin/wine"
	prefix  = "/mnt"
	user    = 65534
)

// boot is the first process of a machine. When the mounts are done, it prints its process id outside of the machine
// (which it reads before it replaces /proc), and waits until its input is closed. The mounts and every process of the
// machine end with it. It ignores its children, so that the kernel reaps the processes that Wine leaves.
const boot = `set -eu
root=$1 folder=$2
mount --bind "$folder" "$root` + prefix + `"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --rbind /dev "$root/dev"
read -r id rest </proc/self/stat
mount -t proc proc "$root/proc"
hostname windows
exec chroot "$root" sh -c 'echo "$0"; exec env --ignore-signal=CHLD cat' "$id"`

// keeper runs the machine and removes the folder when it has ended, even if this program ended before.
const keeper = `unshare $4 --mount --pid --uts --fork --kill-child sh -c "$1" boot "$2" "$3"; rm -rf "$3"`

// machine is a running set of namespaces in which Wine has the Debian as / and a prefix.
type machine struct {
	keeper *exec.Cmd
	stdin  io.Closer
	// id is the process id of boot, outside of the machine.
	id      string
	network Network
	windows *windows // nil before Windows has booted
}

// start boots a machine for the prefix in the folder. The folder is removed when the machine ends.
func start(root, folder string, network Network) (*machine, error) {
	keep := exec.Command("sh", "-c", keeper, "keeper", boot, root, folder, network.option()) //nolint:noctx // it ends when its input closes
	m := &machine{keeper: keep, network: network}
	// A group of its own: an interrupt on the terminal reaches only this program.
	m.keeper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	m.keeper.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	var complaints strings.Builder
	m.keeper.Stderr = &complaints
	stdin, err := m.keeper.StdinPipe()
	if err != nil {
		return nil, err
	}
	m.stdin = stdin
	stdout, err := m.keeper.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := m.keeper.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		err = errors.Join(err, m.stop())
		return nil, fmt.Errorf("starting a machine for Wine: %w\n%s", err, complaints.String())
	}
	m.id = strings.TrimSpace(line)
	if err := m.connectNetwork(); err != nil {
		return nil, errors.Join(err, m.stop())
	}
	return m, nil
}

// stop ends every process of the machine and removes its folder.
func (m *machine) stop() error {
	return errors.Join(m.stdin.Close(), m.keeper.Wait(), m.windowsEnded())
}

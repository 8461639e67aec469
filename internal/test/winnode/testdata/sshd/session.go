//go:build windows

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// noStatus is the status of a command that could not be started.
const noStatus = 255

// session serves one channel: a command, or SFTP.
func session(channel ssh.Channel, requests <-chan *ssh.Request) {
	for r := range requests {
		var asked struct{ Text string }
		known := ssh.Unmarshal(r.Payload, &asked) == nil && (r.Type == "exec" || r.Type == "subsystem" && asked.Text == "sftp")
		_ = r.Reply(known, nil) // the connection may be lost
		switch {
		case !known:
		case r.Type == "exec":
			go command(channel, asked.Text)
		default:
			go files(channel)
		}
	}
}

// command runs a line with cmd.exe, and sends its status. If the connection is lost, the stdin of the command ends and its
// output is discarded. The command is not killed.
func command(channel ssh.Channel, line string) {
	status, err := shell(channel, line)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Println(status, line)
	// The connection may be lost.
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
	_ = channel.Close()
}

func shell(channel ssh.Channel, line string) (status uint32, err error) {
	cmd := exec.Command("cmd.exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /c "` + line + `"`}
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return noStatus, err
	}
	if err := cmd.Start(); err != nil {
		return noStatus, err
	}
	go func() {
		_, _ = io.Copy(stdin, channel) // the command may end before it has read everything
		_ = stdin.Close()
	}()
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return uint32(cmd.ProcessState.ExitCode()), err
}

// files serves SFTP, with paths such as /C:/k/x.
func files(channel ssh.Channel) {
	fmt.Println("sftp")
	server, err := sftp.NewServer(channel, sftp.WindowsRootEnumeratesDrives())
	if err == nil {
		err = server.Serve()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = channel.Close() // the connection may be lost
}

//go:build windows

// Service stands in for a service of a Windows node.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/windows/svc"

	"wmco/internal/test/winnode/stub"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--wait" {
		fmt.Println("waits") // as a process outside of the service
		time.Sleep(time.Hour)
	}
	b, err := stub.ReadOwn()
	if err == nil {
		err = recordStart()
	}
	if err == nil {
		err = svc.Run("", service(b))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// recordStart appends the arguments of this start.
func recordStart() error {
	line, err := json.Marshal(os.Args)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	file, err := os.OpenFile(filepath.Join(stub.Seen, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// service is a Behaviour as a service.
type service stub.Behaviour

// Execute implements svc.Handler.
func (s service) Execute(_ []string, requests <-chan svc.ChangeRequest, changes chan<- svc.Status) (specific bool, code uint32) {
	changes <- svc.Status{State: svc.StartPending}
	if err := s.beginServing(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return true, stub.ExitBad
	}
	changes <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop}
	for r := range requests {
		if r.Cmd == svc.Interrogate {
			changes <- r.CurrentStatus
		}
		if r.Cmd == svc.Stop {
			break
		}
	}
	changes <- svc.Status{State: svc.StopPending}
	if s.Hangs {
		time.Sleep(time.Hour)
	}
	return false, 0
}

// beginServing starts everything that runs until the program ends.
func (s service) beginServing() error {
	if s.Config != "" {
		text, err := os.ReadFile(s.Config)
		if err != nil {
			return err
		}
		if s.Bad != "" && bytes.Contains(text, []byte(s.Bad)) {
			return fmt.Errorf("%s contains %q", s.Config, s.Bad)
		}
	}
	for _, address := range s.HTTP {
		if err := serveTarget(address, "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
			return err
		}
	}
	for _, address := range s.TCP {
		if err := serveTarget(address, ""); err != nil {
			return err
		}
	}
	for _, name := range s.Pipes {
		if err := servePipe(name); err != nil {
			return err
		}
	}
	return s.writeLog()
}

// serveTarget sends the same answer on every connection.
func serveTarget(address, answer string) error {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answerConnection(conn, answer)
		}
	}()
	return nil
}

func answerConnection(conn net.Conn, answer string) {
	defer conn.Close() //nolint:errcheck // the client may have disconnected
	if answer == "" {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	buffer := make([]byte, 4<<10)
	if _, err := conn.Read(buffer); err == nil {
		_, _ = io.WriteString(conn, answer)
	}
}

// writeLog appends until the program ends.
func (s service) writeLog() error {
	if s.LogBytes == 0 {
		return nil
	}
	out := []io.Writer{os.Stdout}
	if s.Log != "" {
		file, err := os.OpenFile(s.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		out = append(out, file)
	}
	line := strings.Repeat("x", s.LogBytes-1) + "\n"
	go func() {
		for ; ; time.Sleep(time.Duration(s.LogMilliseconds) * time.Millisecond) {
			for _, w := range out {
				_, _ = io.WriteString(w, line)
			}
		}
	}()
	return nil
}

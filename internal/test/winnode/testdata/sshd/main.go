//go:build windows

// Sshd is an SSH server on Windows for tests: one key, commands with cmd.exe, files with SFTP.
//
//	sshd ADDRESS HOSTKEY AUTHORIZED   listens until it is killed
//
// HOSTKEY (PEM) and AUTHORIZED (a line of authorized_keys) are files, which it reads for every connection. It prints "listens
// ADDRESS", then a line for every request: "sftp", or the status and the command line of a command that has ended.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/crypto/ssh"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: sshd ADDRESS HOSTKEY AUTHORIZED")
	}
	listener, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	fmt.Println("listens", listener.Addr())
	for {
		c, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			if err := serve(c, args[1], args[2]); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
}

// serve serves one connection to its end.
func serve(c net.Conn, hostKey, authorized string) error {
	defer c.Close()
	config, err := configure(hostKey, authorized)
	if err != nil {
		return err
	}
	_, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return fmt.Errorf("shaking hands: %w", err)
	}
	go ssh.DiscardRequests(requests)
	for open := range channels {
		if open.ChannelType() != "session" {
			_ = open.Reject(ssh.UnknownChannelType, "")
			continue
		}
		channel, requests, err := open.Accept()
		if err != nil {
			return err
		}
		go session(channel, requests)
	}
	return nil
}

func configure(hostKey, authorized string) (*ssh.ServerConfig, error) {
	private, err := os.ReadFile(hostKey)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return nil, err
	}
	line, err := os.ReadFile(authorized)
	if err != nil {
		return nil, err
	}
	allowed, _, _, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		return nil, err
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), allowed.Marshal()) {
			return nil, errors.New("the key is not authorized")
		}
		return &ssh.Permissions{}, nil
	}}
	config.AddHostKey(signer)
	return config, nil
}

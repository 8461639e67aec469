// Command simhost runs in place of a user's shell on SSH servers of tests: it is what SSH shows of a Windows host.
//
//	ForceCommand simhost FOLDER        the host's files are below FOLDER/C, its settings in FOLDER/settings.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"wmco/internal/test/sshtest/simulated"
)

func main() {
	status, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "simhost:", err)
	}
	os.Exit(status)
}

const statusBroken = 99

func run() (int, error) {
	if len(os.Args) != 2 {
		return statusBroken, fmt.Errorf("usage: simhost FOLDER")
	}
	m := simulated.Machine{Folder: os.Args[1]}
	data, err := os.ReadFile(filepath.Join(m.Folder, simulated.SettingsFile))
	if err != nil {
		return statusBroken, err
	}
	if err := json.Unmarshal(data, &m.Settings); err != nil {
		return statusBroken, err
	}
	command := os.Getenv("SSH_ORIGINAL_COMMAND")
	if command == simulated.SFTP {
		return m.ServeFiles()
	}
	return m.Run(command)
}

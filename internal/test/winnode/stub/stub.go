// Package stub has the behaviour of stand-ins for the services of a Windows node. All are copies of one executable,
// with the behaviour appended.
//
//	service.exe + Behaviour --Attach--> kubelet.exe, containerd.exe ... --Own--> Behaviour
package stub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Behaviour is what a stand-in does in addition to reporting to the service control manager.
type Behaviour struct {
	// Version makes one executable differ from another.
	Version string `json:"version,omitempty"`
	// HTTP and TCP are the addresses that it serves, Pipes the names. The answer to every HTTP request is status 200.
	HTTP  []string `json:"http,omitempty"`
	TCP   []string `json:"tcp,omitempty"`
	Pipes []string `json:"pipes,omitempty"`
	// Config is a file that it reads when it starts. It ends with exit code ExitBad if the file is missing or contains
	// Bad.
	Config string `json:"config,omitempty"`
	Bad    string `json:"bad,omitempty"`
	// Hangs makes it ignore a stop.
	Hangs bool `json:"hangs,omitempty"`
	// Log is a file that it keeps open. Every LogMilliseconds it appends LogBytes to the file, and prints them.
	Log             string `json:"log,omitempty"`
	LogBytes        int    `json:"logBytes,omitempty"`
	LogMilliseconds int    `json:"logMilliseconds,omitempty"`
}

// ExitBad is the exit code for a bad configuration.
const ExitBad = 7

// Seen is the folder for the arguments of stand-ins. Each start appends a line of JSON to a file with the name of the
// executable, if the folder exists.
const Seen = `C:\seen`

// mark is between the executable and its behaviour.
const mark = "\nwmco stub service: "

// maxTail is the limit of mark and behaviour, in bytes.
const maxTail = 64 << 10

// AttachBehaviour returns a copy of the program with this behaviour.
func AttachBehaviour(program []byte, b Behaviour) ([]byte, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	return append(append(bytes.Clone(program), mark...), text...), nil
}

// ReadOwn returns the behaviour of the program that calls it.
func ReadOwn() (Behaviour, error) {
	path, err := os.Executable()
	if err != nil {
		return Behaviour{}, err
	}
	tail, err := tailOf(path)
	if err != nil {
		return Behaviour{}, err
	}
	at := bytes.LastIndex(tail, []byte(mark))
	if at < 0 {
		return Behaviour{}, errors.New("this program has no behaviour attached")
	}
	var b Behaviour
	if err := json.Unmarshal(tail[at+len(mark):], &b); err != nil {
		return Behaviour{}, fmt.Errorf("reading the behaviour of this program: %w", err)
	}
	return b, nil
}

func tailOf(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-maxTail), maxTail))
}

// Package stub is what a stand-in for a service of a Windows node does. Its program is one executable; what a copy of it
// does stands at its end.
//
//	service.exe + Behaviour --Attach--> kubelet.exe, containerd.exe ...      on the node: Own
package stub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Behaviour is what a stand-in does beside telling the service control manager that it runs.
type Behaviour struct {
	// Version makes one executable differ from another.
	Version string `json:"version,omitempty"`
	// HTTP and TCP are addresses, Pipes names, that it serves. What asks over HTTP gets status 200.
	HTTP  []string `json:"http,omitempty"`
	TCP   []string `json:"tcp,omitempty"`
	Pipes []string `json:"pipes,omitempty"`
	// Config is a file that it reads when it starts; it ends with exit code ExitBad when the file is not there or holds Bad.
	Config string `json:"config,omitempty"`
	Bad    string `json:"bad,omitempty"`
	// Hangs makes it answer no stop.
	Hangs bool `json:"hangs,omitempty"`
	// Log is a file that it appends to and keeps open; LogBytes are how many bytes it writes there, and prints, each time
	// that LogMilliseconds have passed.
	Log             string `json:"log,omitempty"`
	LogBytes        int    `json:"logBytes,omitempty"`
	LogMilliseconds int    `json:"logMilliseconds,omitempty"`
}

// ExitBad is the exit code of one whose configuration is bad.
const ExitBad = 7

// Seen is the folder in which each start of a stand-in leaves a line with its arguments, as JSON, in a file of the name of
// its executable. Where there is no such folder, nothing is left.
const Seen = `C:\seen`

// mark stands between an executable and what it does.
const mark = "\nwmco stub service: "

// maxTail bounds how long what stands at the end is, in bytes.
const maxTail = 64 << 10

// Attach makes of the program one that does this.
func Attach(program []byte, b Behaviour) ([]byte, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	return append(append(bytes.Clone(program), mark...), text...), nil
}

// Own is what the program that calls it does.
func Own() (Behaviour, error) {
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
		return Behaviour{}, errors.New("nothing stands at the end of this program")
	}
	var b Behaviour
	if err := json.Unmarshal(tail[at+len(mark):], &b); err != nil {
		return Behaviour{}, fmt.Errorf("reading the end of this program: %w", err)
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

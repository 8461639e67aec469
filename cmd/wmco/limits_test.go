package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"wmco/applier/remote"
	"wmco/applier/remote/ssh"
)

// phases are the rows of the table of limits in docs/command-line.md, by field.
var phases = map[string]string{
	"Dial": "TCP connection", "Handshake": "SSH handshake and authentication", "Channel": "opening a channel, starting a command in it, each answer over SFTP",
	"Silence": "a command without input or output", "KeepAlive": "between two keepalives", "Missed": "missed keepalives",
	"Kept": "an unused connection is kept", "Question": "`facts`, `version`, `confirm`", "Compare": "`observe`, `verify`",
	"Upload": "reading the agent back and uploading it", "Apply": "`apply`, beside `--wait` and `--confirm-within`",
	"Idle": "a host keeps its worker without progress", "Turn": "a host keeps its worker at most",
}

// Every limit is in the table, with its value.
func TestTheDocumentedLimitsAreThoseOfTheProgram(t *testing.T) {
	text, err := os.ReadFile("../../docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, limits := range []any{ssh.DefaultLimits(), remote.DefaultLimits()} {
		v := reflect.ValueOf(limits)
		for i := range v.NumField() {
			name, value := v.Type().Field(i).Name, v.Field(i).Interface()
			if d, ok := value.(time.Duration); ok {
				value = shortly(d)
			}
			row := fmt.Sprintf("| %s | %v |", phases[name], value)
			if v.Field(i).IsZero() || phases[name] == "" || !strings.Contains(string(text), row) {
				t.Errorf("%s: no row %q", name, row)
			}
		}
	}
}

// shortly returns a duration without zeros at its end.
func shortly(d time.Duration) string {
	text := strings.TrimSuffix(d.String(), "m0s") // 30m0s
	if text != d.String() {
		text += "m"
	}
	return strings.TrimSuffix(text, "h0m") + map[bool]string{true: "h"}[strings.HasSuffix(text, "h0m")]
}

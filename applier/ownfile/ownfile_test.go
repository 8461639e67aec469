package ownfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileIsWhatItsNameSays(t *testing.T) {
	const text = "program"
	write := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole, err := Digest(write("x", text))
	if err != nil || len(whole) != 64 {
		t.Fatalf("%q, %v", whole, err)
	}
	short := whole[:12]
	for _, tt := range []struct {
		name, content string
		damaged       bool
	}{
		{"wmco-node-" + short + ".exe", text, false},
		{"wmco-node-" + short, text, false},
		{"WMCO-NODE-" + strings.ToUpper(short) + ".EXE", text, false},
		{"wmco-node-" + short + ".exe", text + "x", true},
		{"wmco-node-" + short + ".exe", text[1:], true},
		{"wmco-node-" + short + ".exe", "", true},
		{"wmco-node-" + short + ".exe", "progran", true},
		{"WMCO-NODE-" + strings.ToUpper(short) + ".EXE", "progran", true},
		{"wmco-node.exe", "anything", false},
		{"wmco-node-2.exe", "anything", false},
		{"guard.exe", "anything", false},
	} {
		err := File{write(tt.name, tt.content), openFile}.checkName()
		if got := errors.As(err, new(*DamagedError)); got != tt.damaged || err != nil && !tt.damaged {
			t.Errorf("%s with %q: %v", tt.name, tt.content, err)
		}
	}
	if err := (File{filepath.Join(t.TempDir(), "wmco-node-"+short+".exe"), openFile}).checkName(); err == nil {
		t.Error("a file that cannot be read is right")
	}
	if err := Check(nil); err != nil {
		t.Errorf("a program without a digest in its name: %v", err)
	}
}

func TestACallerSaysWhichFileItMeans(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sum := NewSum()
	if err := (File{path, openFile}).readInto(sum); err != nil {
		t.Fatal(err)
	}
	right := SumText(sum)
	for _, tt := range []struct {
		args    []string
		damaged bool
	}{
		{[]string{"apply", Flag, right}, false},
		{[]string{"apply", Flag, "00000000"}, true},
		{[]string{"apply", Flag, ""}, true},
		{[]string{"apply", Flag}, false}, // what reads the arguments refuses that
	} {
		if err := Check(tt.args); errors.As(err, new(*DamagedError)) != tt.damaged || err != nil && !tt.damaged {
			t.Errorf("%q: %v", tt.args, err)
		}
	}
}

package controlplane

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestASnapshotHasTheDefinitionsAlone: a control plane that began with a snapshot serves every kind, and has no object of an earlier one.
func TestASnapshotHasTheDefinitionsAlone(t *testing.T) {
	first := start(t, Options{}) // or skips; now there is a snapshot
	admin := func(c *ControlPlane) client.Client {
		made, err := client.New(c.Config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "of-the-first"}}
	if err := admin(first).Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	modules, err := findModules()
	if err != nil {
		t.Fatal(err)
	}
	files := definitions(modules.openshift)
	s, err := newSnapshot(first.programs, files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.folder); err != nil {
		t.Fatalf("nothing was kept: %v", err)
	}
	second := start(t, Options{})
	if err := second.Await(t.Context(), second.CRDs, func(err error) bool { return err == nil }); err != nil {
		t.Error(err)
	}
	if err := admin(second).Get(t.Context(), client.ObjectKeyFromObject(cm), cm); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the object of another control plane: %v", err)
	}
	other, err := newSnapshot(first.programs, files[1:])
	if err != nil || other == s {
		t.Errorf("other definitions have the same snapshot: %v", err)
	}
}

// TestASnapshotIsWhole: what could not be written to its end is no snapshot.
func TestASnapshotIsWhole(t *testing.T) {
	s := snapshot{filepath.Join(t.TempDir(), "snapshot")}
	broken := errors.New("the disk is full")
	err := s.keep(func(folder string) error { return errors.Join(os.Mkdir(folder, 0o700), broken) })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(s.folder)); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	write := func(folder string) error {
		return errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "file"), nil, 0o600))
	}
	for range 2 { // the second process comes too late
		if err := s.keep(write); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := s.copyTo(t.TempDir()); !found || err != nil {
		t.Errorf("found %t, %v", found, err)
	}
}

// TestAProcessThatBeganLateIsEnded: the lifeline ends what it was not told of, by the folder in its arguments, and removes the folder.
func TestAProcessThatBeganLateIsEnded(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := newLifeline(folder)
	if err != nil {
		t.Fatal(err)
	}
	late := exec.CommandContext(context.Background(), "tail", "-f", "/dev/null", "--retry", folder)
	other := exec.CommandContext(t.Context(), "tail", "-f", "/dev/null")
	for _, c := range []*exec.Cmd{late, other} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.pipe.Close(); err != nil { // as the kernel does it when a program ends
		t.Fatal(err)
	}
	_ = late.Wait() // it was killed
	if err := l.shell.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Errorf("another process was ended: %v", err)
	}
	_ = other.Wait() // it was killed
}

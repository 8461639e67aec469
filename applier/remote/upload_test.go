package remote

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"wmco/bundle"
)

const (
	// programFile is where the program lies, leftover is the file of another upload of it.
	programFile = "C:/Windows/wmco/wmco-node-0123456789ab.exe"
	leftover    = programFile + ".cafe0123" + bundle.NewMark
)

// hooked are files of a host on which others work too.
type hooked struct {
	fakeFiles
	// written is called after each Write, named by what was written.
	written func(path string)
}

func (h hooked) Write(path string, from io.Reader, at, size int64) error {
	err := h.fakeFiles.Write(path, from, at, size)
	if h.written != nil {
		h.written(strings.TrimPrefix(path, "/"))
	}
	return err
}

func uploadTo(files Files, pause func()) upload {
	return upload{Files: files, program: theAgent(), target: sftpPath(programPath), progress: func() {}, copying: func(int64) io.Writer { return io.Discard }, mayChange: func() error { return nil }, pause: func() error {
		pause()
		return nil
	}}
}

// TestAnInterruptedUploadIsTakenOver under another name, so that no two uploads write one file.
func TestAnInterruptedUploadIsTakenOver(t *testing.T) {
	files := fakeFiles{leftover: {Data: []byte("ag")}}
	wrote := ""
	u := uploadTo(hooked{files, func(path string) { wrote = path }}, func() {})
	done, resumed, err := u.resumeUpload()
	if !done || !resumed || err != nil || string(files[programFile].Data) != agentText || len(files) != 1 {
		t.Errorf("done %t, resumed %t, %v: %v", done, resumed, err, files)
	}
	if wrote == leftover {
		t.Error("the file of the other upload was written")
	}
}

// TestTheFileOfAnUploadThatRunsIsLeftAlone.
func TestTheFileOfAnUploadThatRunsIsLeftAlone(t *testing.T) {
	files := fakeFiles{leftover: {Data: []byte("a")}}
	grow := func() {
		files[leftover] = &fstest.MapFile{Data: append(files[leftover].Data, agentText[len(files[leftover].Data)])}
	}
	wrote := ""
	u := uploadTo(hooked{files, func(path string) { wrote = path }}, grow)
	done, resumed, err := u.resumeUpload()
	if !done || resumed || err != nil || string(files[programFile].Data) != agentText {
		t.Errorf("done %t, resumed %t, %v", done, resumed, err)
	}
	if wrote == leftover || string(files[leftover].Data) != agentText[:1+growLooks] {
		t.Errorf("%s was written; the other upload has %q", wrote, files[leftover].Data)
	}
}

// TestAnUploadWhoseFileIsTakenOver: a frozen operator goes on when another one has uploaded the program, or still uploads it.
func TestAnUploadWhoseFileIsTakenOver(t *testing.T) {
	for name, completed := range map[string]bool{"the other upload is complete": true, "the other upload goes on": false} {
		files := fakeFiles{}
		u := uploadTo(hooked{files, func(path string) {
			files[leftover] = files[path]
			if completed {
				files[programFile] = files[path]
			}
			delete(files, path)
		}}, func() {})
		done, _, err := u.uploadFromStart()
		switch {
		case completed && (done || err != nil || string(files[programFile].Data) != agentText):
			t.Errorf("%s: done %t, %v, %v", name, done, err, files)
		case !completed && (!errors.Is(err, ErrOtherUpload) || strings.Contains(fixForUpload(err), "room")):
			t.Errorf("%s: %v; fix: %s", name, err, fixForUpload(err))
		}
	}
}

// TestAnUploadOfAnOperatorThatLeadsNoLonger was begun while it did: the host gets nothing of it, and keeps its other programs.
func TestAnUploadOfAnOperatorThatLeadsNoLonger(t *testing.T) {
	lost := errors.New("another operator leads")
	older := "C:/Windows/wmco/wmco-node-ba9876543210.exe"
	files := fakeFiles{older: {Data: []byte("older")}}
	leads := true
	u := uploadTo(hooked{files, func(string) { leads = false }}, func() {})
	u.mayChange = func() error {
		if leads {
			return nil
		}
		return lost
	}
	if done, _, err := u.resumeUpload(); done || !errors.Is(err, lost) {
		t.Errorf("done %t, %v", done, err)
	}
	if len(files) != 1 || files[older] == nil {
		t.Errorf("the host has %v", files)
	}
}

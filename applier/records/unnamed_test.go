package records

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// fails are files of which every call fails, with the path in the error.
type fails struct{}

func failed(path string) error {
	return fmt.Errorf("%s.wmco-new: disk full: %w", path, &fs.PathError{Op: "open", Path: path, Err: errors.New("no space")})
}

func (fails) Stat(context.Context, []string) ([]plan.FileInfo, error) { return nil, nil }

func (fails) List(context.Context, string) ([]plan.FileInfo, error) { return nil, nil }

func (fails) Open(_ context.Context, path string) (io.ReadCloser, error) { return nil, failed(path) }

func (fails) Write(_ context.Context, path string, _ bundle.Access, _ io.Reader) error {
	return failed(path)
}

func (fails) Link(_ context.Context, _, second string) error { return failed(second) }

func (fails) Remove(_ context.Context, path string) error { return failed(path) }

func TestErrorsDoNotNameAContent(t *testing.T) {
	const sum = "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5"
	part, content := archive.Part{SHA256: sum, Index: 1, Of: 1}, plan.Content{SHA256: sum, Size: 5}
	for name, do := range map[string]func(*Store) error{
		"a part is written": func(s *Store) error { return s.PutPart(t.Context(), part, strings.NewReader("x")) },
		"a part is removed": func(s *Store) error {
			s.AddPart(part, 1)
			_, err := s.AdmitPart(t.Context(), archive.Part{SHA256: sum, Index: 1, Of: 2})
			return err
		},
		"a part is read": func(s *Store) error {
			s.AddPart(part, 1)
			_, err := s.VerifyContent(t.Context(), content)
			return err
		},
		"a file is kept": func(s *Store) error { return s.KeepFile(t.Context(), `C:\k\x`, content) },
		"a kept file is read": func(s *Store) error {
			s.previous[sum] = true
			_, err := s.OpenContent(t.Context(), content)
			return err
		},
	} {
		s, err := openStore(t.Context(), &Records{host: fails{}})
		if err != nil {
			t.Fatal(err)
		}
		err = do(s)
		var path *fs.PathError
		if err == nil || strings.Contains(err.Error(), sum) || !errors.As(err, &path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

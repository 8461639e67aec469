package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sirupsen/logrus"
	"go.podman.io/image/v5/directory"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/signature"

	"wmco/gateway/signatures"
)

// version is set by the linker.
var version = "devel"

func main() {
	logrus.SetOutput(io.Discard)
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: image-verifier FOLDER, or image-verifier version")
		os.Exit(2)
	}
	if os.Args[1] == "version" {
		fmt.Println("image-verifier with containers/image " + version)
		return
	}
	err := signatures.AnswerQuestion(os.Stdin, os.Stdout, func(q signatures.Question) (signatures.Answer, error) {
		dir, err := os.MkdirTemp(os.Args[1], signatures.FolderPrefix)
		if err != nil {
			return signatures.Answer{}, err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // it has nothing that is secret
		return decideImage(context.Background(), dir, q)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// decideImage answers a question, by way of an empty folder. An error means that there is no answer.
func decideImage(ctx context.Context, dir string, q signatures.Question) (a signatures.Answer, err error) {
	policy, err := signature.NewPolicyFromBytes(q.Policy)
	if err != nil {
		return a, fmt.Errorf("reading the policy: %w", err)
	}
	name, err := parseName(q.Image)
	if err != nil {
		return a, fmt.Errorf("reading the name of the image: %w", err)
	}
	if err := writeImage(dir, q); err != nil {
		return a, err
	}
	folder, err := directory.NewReference(dir)
	if err != nil {
		return a, err
	}
	source, err := folder.NewImageSource(ctx, nil)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	judge, err := signature.NewPolicyContext(policy)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, judge.Destroy()) }()
	named := image.UnparsedInstanceWithReference(image.UnparsedInstance(source, nil), name)
	accepted, refused := judge.IsRunningImageAllowed(ctx, named)
	if accepted && refused == nil {
		return signatures.Answer{Accepted: true}, nil
	}
	return signatures.Answer{Reason: fmt.Sprint(refused)}, nil
}

// sigstoreBlob begins a file with a signature of sigstore in a folder of containers/image.
const sigstoreBlob = "\x00sigstore-json\n"

// writeImage writes an image without its layers as containers/image reads it from a folder (package directory: manifest.json, signature-1 and so on).
func writeImage(dir string, q signatures.Question) error {
	files := map[string][]byte{"manifest.json": q.Manifest, "version": []byte("Directory Transport Version: 1.1\n")}
	for i, s := range q.Signatures {
		data, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("encoding a signature: %w", err)
		}
		files["signature-"+strconv.Itoa(i+1)] = append([]byte(sigstoreBlob), data...)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

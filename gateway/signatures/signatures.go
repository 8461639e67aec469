package signatures

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"wmco/bundle"
)

// Question is about one image.
type Question struct {
	Schema int `json:"schema"`
	// Image is its name as in the Pod, with a tag or a digest, and docker.io and library where the Pod leaves them out.
	Image string `json:"image"`
	// Policy is a policy.json (containers-policy.json(5)). Its default is applied.
	Policy json.RawMessage `json:"policy"`
	// Manifest is that of the image, not of an index.
	Manifest   []byte      `json:"manifest"`
	Signatures []Signature `json:"signatures"`
}

// Signature is a layer of the image with the signatures (github.com/sigstore/cosign, specs/SIGNATURE_SPEC.md). The JSON is that in which
// containers/image keeps it in a folder.
type Signature struct {
	MIMEType    string            `json:"mimeType"`
	Payload     []byte            `json:"payload"`
	Annotations map[string]string `json:"annotations"`
}

// MediaType is that of the layers that are signatures.
const MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"

// Answer is whether the policy accepts the image.
type Answer struct {
	Schema   int    `json:"schema"`
	Accepted bool   `json:"accepted"`
	Reason   string `json:"reason,omitempty"`
}

// FolderPrefix begins the names of folders below Program.Folder. One is left if the program is killed.
const FolderPrefix = "image-verifier-"

const (
	schema = 1
	// maxQuestion is more than a manifest and its signatures in base64, in bytes; maxAnswer more than a reason.
	maxQuestion = 64 << 20
	maxAnswer   = 1 << 20
	// answerLimit is how long the program has, on a host that has just started too.
	answerLimit = 30 * time.Second
)

// Program is image-verifier.
type Program struct {
	Path string
	// Folder is where it keeps the image while it decides. No user may write there.
	Folder string
}

// Ask starts the program. An error means that it gave no answer.
func (p Program) Ask(ctx context.Context, q Question) (Answer, error) {
	q.Schema = schema
	data, err := json.Marshal(q)
	if err != nil {
		return Answer{}, fmt.Errorf("encoding the question about signatures: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Path, p.Folder)
	cmd.Stdin = bytes.NewReader(data)
	out, failed := limitedBuffer{limit: maxAnswer}, limitedBuffer{limit: maxAnswer}
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Run(); err != nil {
		return Answer{}, fmt.Errorf("running %s: %w", bundle.Base(p.Path), errors.Join(err, failed.messageError()))
	}
	var a Answer
	if err := json.Unmarshal(out.kept, &a); err != nil || a.Schema != schema {
		return Answer{}, fmt.Errorf("running %s: its answer is not one", bundle.Base(p.Path))
	}
	return a, nil
}

// AnswerQuestion reads one question, and writes the answer that decide gives.
func AnswerQuestion(in io.Reader, out io.Writer, decide func(Question) (Answer, error)) error {
	data, err := io.ReadAll(io.LimitReader(in, maxQuestion+1))
	if err != nil || len(data) > maxQuestion {
		return errors.New("reading the question: it is too large, or ends early")
	}
	var q Question
	if err := json.Unmarshal(data, &q); err != nil || q.Schema != schema {
		return errors.New("reading the question: it is not one of this version")
	}
	a, err := decide(q)
	if err != nil {
		return err
	}
	a.Schema = schema
	if err := json.NewEncoder(out).Encode(a); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// limitedBuffer keeps the beginning of what is written. It has no other way in: os/exec would take ReadFrom of a bytes.Buffer.
type limitedBuffer struct {
	kept  []byte
	limit int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), b.limit-len(b.kept))]...)
	return len(p), nil
}

// messageError returns what was written as an error; nil for nothing.
func (b *limitedBuffer) messageError() error {
	if text := strings.TrimSpace(string(b.kept)); text != "" {
		return errors.New(text)
	}
	return nil
}

package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"wmco/bundle"
)

// ErrMalformed is wrapped by the errors of a stream that no Writer made. A stream that ends early is
// io.ErrUnexpectedEOF instead.
var ErrMalformed = errors.New("malformed archive")

// encodeIndex returns contents.json: a list with one line for each content.
func encodeIndex(contents []Content) ([]byte, error) {
	out := bytes.NewBufferString("[")
	for i, c := range contents {
		data, err := json.Marshal(c)
		if err != nil {
			return nil, fmt.Errorf("encoding content %s: %w", c.Digest, err)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
		out.Write(data)
	}
	out.WriteString("\n]\n")
	return out.Bytes(), nil
}

// decodeIndex reads what encodeIndex wrote, byte for byte. Each content is checked as it is read, so that a list of
// empty elements takes no more memory than its own bytes.
func decodeIndex(data []byte) ([]Content, error) {
	in := json.NewDecoder(bytes.NewReader(data))
	if _, err := in.Token(); err != nil {
		return nil, notJSON(err)
	}
	var contents []Content
	for in.More() {
		var c Content
		if err := in.Decode(&c); err != nil {
			return nil, notJSON(err)
		}
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		contents = append(contents, c)
	}
	again, err := encodeIndex(contents)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, data) {
		return nil, fmt.Errorf("%w: the list of contents is not in its one form", ErrMalformed)
	}
	return contents, nil
}

// notJSON returns an error that cannot be taken for the end of the stream.
func notJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the list of contents has no end", ErrMalformed)
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}

// Checker checks a list of contents against its manifest, and that parts are those of the list, in the order of their
// names. Whether the bytes of a content are right is known at the end of Decode.
type Checker struct {
	contents map[string]Content
	last     string
}

// NewChecker checks that the contents are those of the manifest, sorted and without duplicates. Its errors and those of
// Part are ErrMalformed.
func NewChecker(m bundle.Manifest, contents []Content) (*Checker, error) {
	s := &Checker{contents: map[string]Content{}}
	needed, last := sizesByDigest(m), bundle.Digest("")
	for _, c := range contents {
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		size, ok := needed[c.Digest]
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: the manifest does not name content %s", ErrMalformed, c.Digest)
		case size != 0 && size != c.Size:
			return nil, fmt.Errorf("%w: content %s has %d bytes, the manifest has %d", ErrMalformed, c.Digest, c.Size, size)
		case c.Digest <= last:
			return nil, fmt.Errorf("%w: content %s is listed twice or out of order", ErrMalformed, c.Digest)
		}
		last = c.Digest
		if err := s.addContent(c); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// addContent adds a content, which may be known under another digest already.
func (s *Checker) addContent(c Content) error {
	known, ok := s.contents[c.SHA256]
	if ok && (known.Size != c.Size || known.Stored != c.Stored) {
		return fmt.Errorf("%w: contents %s and %s have the same SHA-256 and other sizes", ErrMalformed, known.Digest, c.Digest)
	}
	if !ok {
		s.contents[c.SHA256] = c
	}
	return nil
}

// Part checks the next part and returns its content.
func (s *Checker) Part(p Part) (Content, error) {
	c, ok := s.contents[p.SHA256]
	switch name := p.Name(); {
	case !ok:
		return Content{}, fmt.Errorf("%w: a part is of no content in the list", ErrMalformed)
	case p.Of != c.Parts() || p.Index < 1 || p.Index > p.Of:
		return Content{}, fmt.Errorf(
			"%w: content %s has %s, there is no part %d of %d", ErrMalformed, c.Digest,
			bundle.Count(c.Parts(), "part"), p.Index, p.Of,
		)
	case name <= s.last:
		return Content{}, fmt.Errorf("%w: part %d of content %s is repeated or out of order", ErrMalformed, p.Index, c.Digest)
	default:
		s.last = name
		return c, nil
	}
}

package applier

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// fileImported is the existing operator's list of the CAs that its daemon added to LocalMachine\Root. It is a copy of
// the PEM file that they came from, which the daemon reads to remove them again
// (github.com/openshift/windows-machine-config-operator, pkg/daemon/certs).
const fileImported = `C:\k\imported-certs.pem`

// maxImported limits the list, in bytes. All public CAs together take about 250 kB.
const maxImported = 8 << 20

// readImported reads the existing operator's list as entries that are managed: its CAs and the file itself. So the plan
// removes the CAs that the bundle does not want, and after them the file: until then, an interrupted run finds them
// there.
//
// A CA that cannot be read is in no plan. The file stays then, with a note.
func (s *situation) readImported(ctx context.Context) error {
	infos, err := s.host.Stat(ctx, []string{fileImported})
	if err != nil {
		return fmt.Errorf("observing %s: %w", fileImported, err)
	}
	switch {
	case infos[0].Kind != plan.FileRegular:
		return nil
	case isForeign(infos[0]):
		// The daemon runs as SYSTEM. Whoever else made the file must not choose which CAs are removed.
		s.records.Notes = append(s.records.Notes, fileImported+" is ignored: it is neither SYSTEM's nor an administrator's")
		return nil
	}
	whole := false
	if infos[0].Size <= maxImported {
		data, err := records.ReadAll(ctx, s.host, fileImported)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the daemon has removed it since
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", fileImported, err)
		}
		s.imported.Cluster.TrustedCAs, whole = parseImported(data)
	}
	if !whole {
		s.records.Notes = append(s.records.Notes, fileImported+` is damaged: CAs of the existing operator that cannot be read from it stay trusted (fix: remove them from LocalMachine\Root, then remove the file)`)
		return nil
	}
	s.imported.Cluster.Files = []bundle.File{{Path: fileImported, Impact: bundle.ImpactNone}}
	return nil
}

// parseImported returns the certificates of a PEM text, and reports whether they are all that it lists. The daemon
// leaves an empty file when it has removed the last CA.
func parseImported(data []byte) (cas []bundle.TrustedCA, whole bool) {
	blocks := bytes.Count(data, []byte("-----BEGIN "))
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if _, err := x509.ParseCertificate(block.Bytes); err != nil || block.Type != "CERTIFICATE" {
			continue
		}
		cas = append(cas, bundle.TrustedCA{Digest: bundle.Of(block.Bytes), Impact: bundle.ImpactNone})
	}
	empty := len(bytes.TrimSpace(data)) == 0
	return cas, len(cas) == blocks && (blocks > 0 || empty)
}

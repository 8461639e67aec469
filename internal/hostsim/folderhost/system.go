package folderhost

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"wmco/preflight"
)

// FileSystem is the file beside the drive of a simulated host with the differences to a healthy Windows: fields of
// preflight.Machine.
const FileSystem = "windows.json"

// System is the Windows of the host in a folder, as preflight asks it.
type System string

// Machine implements collect.System. Without a file, the host is a healthy Windows Server.
func (s System) Machine(_ context.Context, m *preflight.Machine) []error {
	m.Update, m.Edition, m.Installation, m.Locale, m.PageFile = 2340, "ServerDatacenter", "Server Core", "en-US", true
	for _, port := range preflight.Ports() {
		m.Ports = append(m.Ports, preflight.Port{Number: port.Number, State: preflight.PortFree})
	}
	data, err := os.ReadFile(filepath.Join(string(s), FileSystem))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, m)
	}
	if err != nil {
		return []error{err}
	}
	return nil
}

package permissions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"wmco/internal/test/testenv/controlplane"
)

// Variable is the environment variable with the folder in which tests keep audit logs: a folder for each package, made
// by the run of all its tests.
const Variable = "WMCO_AUDIT"

// complete is the file in the folder of a package that marks that all its tests have run, whatever became of them.
const complete = "complete"

// BeginLogs empties the folder of a package, before its tests run.
func BeginLogs(folder string) error {
	return errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755))
}

// KeepLog writes what operators have asked for into the folder of a package, for one control plane.
func KeepLog(folder string, plane *controlplane.ControlPlane) error {
	requests, err := plane.Requests()
	if err != nil {
		return err
	}
	requests = slices.DeleteFunc(requests, func(r controlplane.Request) bool { return r.User != OperatorUser || r.Resource == "" })
	data, err := json.Marshal(requests)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, strconv.Itoa(os.Getpid())+".json"), data, 0o600)
}

// EndLogs notes that all tests of the package have run.
func EndLogs(folder string) error { return os.WriteFile(filepath.Join(folder, complete), nil, 0o600) }

// ReadLogs returns what the tests of packages have kept. One that has not kept the log of all its tests is an error.
func ReadLogs(folder string, packages ...string) ([]controlplane.Request, error) {
	var all []controlplane.Request
	for _, name := range packages {
		requests, err := readPackage(filepath.Join(folder, name))
		if err != nil {
			return nil, fmt.Errorf("reading the audit logs of %s: %w", name, err)
		}
		all = append(all, requests...)
	}
	return all, nil
}

func readPackage(folder string) ([]controlplane.Request, error) {
	if _, err := os.Stat(filepath.Join(folder, complete)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("not all of its tests have run (make test-stories): %w", err)
	} else if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []controlplane.Request
	for _, name := range files {
		var requests []controlplane.Request
		data, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(data, &requests)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, requests...)
	}
	if len(all) == 0 {
		return nil, errors.New("they have no request of an operator")
	}
	return all, nil
}

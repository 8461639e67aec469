package settings

import (
	"errors"
	"strconv"

	"golang.org/x/sys/windows/registry"

	"wmco/applier/winhost/hklm"
	"wmco/bundle"
)

// keyNotes has the notes of policies, in values with their names. Only administrators write below
// HKEY_LOCAL_MACHINE\SOFTWARE.
const keyNotes = `SOFTWARE\wmco\policies`

// policyValues are the policies in the registry. A value of another type than REG_DWORD is none.
type policyValues struct{}

func (policyValues) getPolicy(name string) (text string, ok bool, err error) {
	path, value := bundle.PolicyPlace(name)
	err = hklm.WithKey(path, registry.QUERY_VALUE, func(k registry.Key) error {
		n, _, err := k.GetIntegerValue(value)
		if errors.Is(err, registry.ErrUnexpectedType) {
			return registry.ErrNotExist
		}
		text = strconv.FormatUint(n, 10)
		return err
	})
	if err != nil {
		return "", false, hklm.IgnoreNotExist(err)
	}
	return text, true, nil
}

func (policyValues) setPolicy(name, value string) error {
	n, err := bundle.PolicyNumber(value)
	if err != nil {
		return err
	}
	path, of := bundle.PolicyPlace(name)
	return hklm.WithNewKey(path, registry.SET_VALUE, func(k registry.Key) error { return k.SetDWordValue(of, n) })
}

func (policyValues) unsetPolicy(name string) error {
	path, value := bundle.PolicyPlace(name)
	return removeValue(path, value)
}

// policyNotes are the notes in the registry.
type policyNotes struct{}

func (policyNotes) getPolicy(name string) (string, bool, error) { return hklm.ReadText(keyNotes, name) }

func (policyNotes) setPolicy(name, note string) error {
	return hklm.WithNewKey(keyNotes, registry.SET_VALUE, func(k registry.Key) error { return k.SetStringValue(name, note) })
}

func (policyNotes) unsetPolicy(name string) error { return removeValue(keyNotes, name) }

func removeValue(path, value string) error {
	return hklm.IgnoreNotExist(hklm.WithKey(path, registry.SET_VALUE, func(k registry.Key) error {
		return hklm.IgnoreNotExist(k.DeleteValue(value))
	}))
}

package services

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/windows/registry"

	"wmco/applier/winhost/hklm"
)

// Where Windows keeps the order in which it tells services that it is about to shut down
// (learn.microsoft.com/windows/win32/services/service-control-handler-function). A kubelet puts itself and what it
// depends on into it (k8s.io/kubernetes/pkg/kubelet/nodeshutdown, nodeshutdown_manager_windows.go), and nothing removes
// them.
const (
	keyControl            = `SYSTEM\CurrentControlSet\Control`
	valuePreshutdownOrder = "PreshutdownOrder"
)

// leavePreshutdownOrder removes a service that is to be deleted from the order. The rest of the order is not changed.
func leavePreshutdownOrder(name string) error {
	err := hklm.WithKey(keyControl, registry.QUERY_VALUE|registry.SET_VALUE, func(k registry.Key) error {
		order, _, err := k.GetStringsValue(valuePreshutdownOrder)
		if err != nil {
			return hklm.IgnoreNotExist(err)
		}
		rest := slices.DeleteFunc(slices.Clone(order), func(s string) bool { return strings.EqualFold(s, name) })
		switch {
		case len(rest) == len(order):
			return nil
		case len(rest) == 0:
			return k.DeleteValue(valuePreshutdownOrder)
		}
		return k.SetStringsValue(valuePreshutdownOrder, rest)
	})
	if err != nil {
		return fmt.Errorf("removing it from the preshutdown order: %w", err)
	}
	return nil
}

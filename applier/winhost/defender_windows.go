package winhost

import (
	"fmt"
	"slices"

	"github.com/go-ole/go-ole"
	"github.com/go-ole/go-ole/oleutil"
	"golang.org/x/sys/windows"

	"wmco/applier"
)

// Defender's settings in WMI (learn.microsoft.com/previous-versions/windows/desktop/defender/msft-mppreference), by the
// scripting API (learn.microsoft.com/windows/win32/wmisdk/scripting-api-for-wmi).
const (
	classLocator      = "WbemScripting.SWbemLocator"
	defenderNamespace = `root\Microsoft\Windows\Defender`
	defenderClass     = "MSFT_MpPreference"
	excludedPrograms  = "ExclusionProcess"
	defenderService   = "WinDefend"
)

// noDefender are the results that a Windows without Defender gives.
var noDefender = []uint32{resultNoNamespace, resultNoManagedClass, resultProviderMissing, resultNotRegistered, resultNoClass}

// microsoftDefender is Defender where its service runs.
type microsoftDefender struct{}

// defenderRuns asks the service control manager. Another product's antivirus stops the service.
func defenderRuns() (bool, error) {
	runs := false
	err := manager(func(scm windows.Handle) error {
		return withService(scm, defenderService, toSee, func(s service) error {
			status, err := s.status()
			runs = status.CurrentState == windows.SERVICE_RUNNING
			return err
		})
	})
	if noService(err) {
		return false, nil
	}
	return runs, err
}

// withDefender connects to WMI.
func withDefender(use func(wmi object) error) error {
	if runs, err := defenderRuns(); err != nil || !runs {
		return cannot(err)
	}
	err := withObject(classLocator, func(locator object) error {
		wmi, err := locator.call("ConnectServer", nil, defenderNamespace)
		if err != nil {
			return err
		}
		defer wmi.Release()
		return use(wmi)
	})
	if slices.Contains(noDefender, resultOf(err)) {
		return applier.ErrNoSetting
	}
	return err
}

func cannot(err error) error {
	if err == nil {
		return applier.ErrNoSetting
	}
	return err
}

func (microsoftDefender) excluded() ([]string, error) {
	var paths []string
	err := withDefender(func(wmi object) error {
		all, err := wmi.call("InstancesOf", defenderClass)
		if err != nil {
			return err
		}
		defer all.Release()
		return oleutil.ForEach(all.IDispatch, func(v *ole.VARIANT) error {
			list, err := object{v.ToIDispatch()}.value(excludedPrograms)
			paths = append(paths, texts(list)...)
			return err
		})
	})
	return paths, err
}

func (microsoftDefender) exclude(program string) error { return changeExclusions("Add", program) }

func (microsoftDefender) include(program string) error { return changeExclusions("Remove", program) }

// changeExclusions calls a method of the class with one program
// (learn.microsoft.com/previous-versions/windows/desktop/defender/add-msft-mppreference and .../remove-msft-mppreference).
func changeExclusions(method, program string) error {
	return withDefender(func(wmi object) error {
		in, err := parameters(wmi, method)
		if err != nil {
			return err
		}
		defer in.Release()
		if err := in.put(excludedPrograms, []string{program}); err != nil {
			return err
		}
		out, err := wmi.call("ExecMethod", defenderClass, method, in.IDispatch)
		if err != nil {
			return err
		}
		defer out.Release()
		code, err := out.value("ReturnValue")
		if err == nil && shown(code) != "0" {
			err = fmt.Errorf("%s of %s answers %v", method, defenderClass, code)
		}
		return err
	})
}

// parameters are what a method takes, to be filled in
// (learn.microsoft.com/windows/win32/wmisdk/constructing-inparameters-objects-and-parsing-outparameters-objects).
func parameters(wmi object, method string) (object, error) {
	steps := []func(object) (object, error){
		func(o object) (object, error) { return o.call("Get", defenderClass) },
		func(o object) (object, error) { return o.get("Methods_") },
		func(o object) (object, error) { return o.call("Item", method) },
		func(o object) (object, error) { return o.get("InParameters") },
		func(o object) (object, error) { return o.call("SpawnInstance_") },
	}
	at := wmi
	for i, step := range steps {
		next, err := step(at)
		if i > 0 {
			at.Release()
		}
		if err != nil {
			return object{}, err
		}
		at = next
	}
	return at, nil
}

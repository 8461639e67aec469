package settings

import (
	"fmt"
	"slices"

	"github.com/go-ole/go-ole"
	"github.com/go-ole/go-ole/oleutil"

	"wmco/applier"
	"wmco/applier/winhost/services"
)

// Defender's settings in WMI (learn.microsoft.com/previous-versions/windows/desktop/defender/msft-mppreference), by the
// scripting API (learn.microsoft.com/windows/win32/wmisdk/scripting-api-for-wmi).
const (
	classLocator      = "WbemScripting.SWbemLocator"
	defenderNamespace = `root\Microsoft\Windows\Defender`
	defenderClass     = "MSFT_MpPreference"
	excludedPrograms  = "ExclusionProcess"
	// defenderService does not run if another antivirus product has replaced Defender.
	defenderService = "WinDefend"
)

// noDefender has the results of a Windows without Defender.
var noDefender = []uint32{resultNoNamespace, resultNoManagedClass, resultProviderMissing, resultNotRegistered, resultNoClass}

// microsoftDefender is Defender, if its service runs.
type microsoftDefender struct{}

// withDefender connects to WMI for the time of use.
func withDefender(use func(wmi object) error) error {
	running, err := services.IsRunning(defenderService)
	if err != nil {
		return err
	}
	if !running {
		return applier.ErrNoSetting
	}
	err = withObject(classLocator, func(locator object) error {
		wmi, err := locator.callMethod("ConnectServer", nil, defenderNamespace)
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

func (microsoftDefender) listExclusions() ([]string, error) {
	var paths []string
	err := withDefender(func(wmi object) error {
		all, err := wmi.callMethod("InstancesOf", defenderClass)
		if err != nil {
			return err
		}
		defer all.Release()
		return oleutil.ForEach(all.IDispatch, func(v *ole.VARIANT) error {
			list, err := object{v.ToIDispatch()}.getValue(excludedPrograms)
			paths = append(paths, textsOfList(list)...)
			return err
		})
	})
	return paths, err
}

func (microsoftDefender) addExclusion(program string) error { return changeExclusions("Add", program) }

func (microsoftDefender) removeExclusion(program string) error {
	return changeExclusions("Remove", program)
}

// changeExclusions calls a method of the class with one program
// (learn.microsoft.com/previous-versions/windows/desktop/defender/add-msft-mppreference and
// .../remove-msft-mppreference).
func changeExclusions(method, program string) error {
	return withDefender(func(wmi object) error {
		in, err := inParameters(wmi, method)
		if err != nil {
			return err
		}
		defer in.Release()
		if err := in.putValue(excludedPrograms, []string{program}); err != nil {
			return err
		}
		out, err := wmi.callMethod("ExecMethod", defenderClass, method, in.IDispatch)
		if err != nil {
			return err
		}
		defer out.Release()
		code, err := out.getValue("ReturnValue")
		if err == nil && shownValue(code) != "0" {
			err = fmt.Errorf("%s of %s returned %v", method, defenderClass, code)
		}
		return err
	})
}

// inParameters returns the in-parameters object of a method, to be filled in
// (learn.microsoft.com/windows/win32/wmisdk/constructing-inparameters-objects-and-parsing-outparameters-objects).
func inParameters(wmi object, method string) (object, error) {
	steps := []func(object) (object, error){
		func(o object) (object, error) { return o.callMethod("Get", defenderClass) },
		func(o object) (object, error) { return o.getObject("Methods_") },
		func(o object) (object, error) { return o.callMethod("Item", method) },
		func(o object) (object, error) { return o.getObject("InParameters") },
		func(o object) (object, error) { return o.callMethod("SpawnInstance_") },
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

package settings

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/go-ole/go-ole"
	"github.com/go-ole/go-ole/oleutil"
)

// Results of COM that have a meaning here (learn.microsoft.com/windows/win32/seccrypto/common-hresult-values and the
// pages of the interfaces).
const (
	resultFalse           = 0x00000001 // S_FALSE
	resultException       = 0x80020009 // DISP_E_EXCEPTION: EXCEPINFO has the result
	resultNotFound        = 0x80070002 // HRESULT_FROM_WIN32(ERROR_FILE_NOT_FOUND)
	resultNoServer        = 0x800706d9 // HRESULT_FROM_WIN32(EPT_S_NOT_REGISTERED): the service does not run
	resultNotRegistered   = 0x80040154 // REGDB_E_CLASSNOTREG
	resultNoClass         = 0x800401f3 // CO_E_CLASSSTRING
	resultNoMember        = 0x8002802b // TYPE_E_ELEMENTNOTFOUND: the object has no such member
	resultNoNamespace     = 0x8004100e // WBEM_E_INVALID_NAMESPACE
	resultNoManagedClass  = 0x80041010 // WBEM_E_INVALID_CLASS
	resultProviderMissing = 0x80041011 // WBEM_E_PROVIDER_NOT_FOUND
)

// resultOf returns the result of a call of COM, 0 if the error has none.
func resultOf(err error) uint32 {
	var failed *ole.OleError
	if !errors.As(err, &failed) {
		return 0
	}
	var said ole.EXCEPINFO
	if uint32(failed.Code()) == resultException && errors.As(failed.SubError(), &said) { //nolint:gosec // an HRESULT
		return said.SCODE()
	}
	return uint32(failed.Code()) //nolint:gosec // an HRESULT
}

// withObject creates an object for the time of use
// (learn.microsoft.com/windows/win32/api/combaseapi/nf-combaseapi-coinitializeex).
func withObject(class string, use func(object) error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := ole.CoInitializeEx(0, ole.COINIT_MULTITHREADED); err != nil && resultOf(err) != resultFalse {
		return fmt.Errorf("starting COM: %w", err)
	}
	defer ole.CoUninitialize()
	made, err := oleutil.CreateObject(class)
	if err != nil {
		return fmt.Errorf("creating %s: %w", class, err)
	}
	defer made.Release()
	dispatch, err := made.QueryInterface(ole.IID_IDispatch)
	if err != nil {
		return fmt.Errorf("using %s: %w", class, err)
	}
	o := object{dispatch}
	defer o.Release()
	return use(o)
}

// object is a COM object with members by name (IDispatch).
type object struct{ *ole.IDispatch }

// getObject reads a property that is an object, and callMethod calls a method that returns one. The caller releases the
// object.
func (o object) getObject(property string, args ...any) (object, error) {
	return objectResult(property)(oleutil.GetProperty(o.IDispatch, property, args...))
}

func (o object) callMethod(method string, args ...any) (object, error) {
	return objectResult(method)(oleutil.CallMethod(o.IDispatch, method, args...))
}

func objectResult(member string) func(*ole.VARIANT, error) (object, error) {
	return func(v *ole.VARIANT, err error) (object, error) {
		if err != nil {
			return object{}, fmt.Errorf("%s: %w", member, err)
		}
		if v.VT != ole.VT_DISPATCH || v.ToIDispatch() == nil {
			return object{}, errors.Join(fmt.Errorf("%s: not an object", member), v.Clear())
		}
		return object{v.ToIDispatch()}, nil
	}
}

// callWithoutResult calls a method and ignores its result.
func (o object) callWithoutResult(method string, args ...any) error {
	v, err := oleutil.CallMethod(o.IDispatch, method, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return v.Clear()
}

// getValue reads a property that is a number, a string or a list of them.
func (o object) getValue(property string) (any, error) {
	v, err := oleutil.GetProperty(o.IDispatch, property)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", property, err)
	}
	var value any
	if list := v.ToArray(); list != nil {
		value = list.ToValueArray()
	} else {
		value = v.Value()
	}
	return value, v.Clear()
}

func (o object) putValue(property string, value any) error {
	v, err := oleutil.PutProperty(o.IDispatch, property, value)
	if err != nil {
		return fmt.Errorf("%s: %w", property, err)
	}
	return v.Clear()
}

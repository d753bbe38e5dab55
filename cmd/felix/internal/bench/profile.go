package bench

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
)

// observer answers a bench's questions about this process, and takes its profiles
// over the measured part. It belongs to one goroutine.
type observer struct {
	cpuProfile, memProfile string
	file                   *os.File // of the running CPU profile
}

func (o *observer) look(m moment) (usage, error) {
	switch m {
	case momentLook:
	case momentCollect:
		runtime.GC()
	case momentTrim:
		debug.FreeOSMemory()
	case momentBegin:
		if err := o.begin(); err != nil {
			return usage{}, err
		}
	case momentEnd:
		u := ownUsage() // before the profile is written
		return u, o.end()
	default:
		return usage{}, fmt.Errorf("unknown command %q", m)
	}
	return ownUsage(), nil
}

func (o *observer) begin() error {
	resetPeak()
	if o.cpuProfile == "" || o.file != nil {
		return nil
	}
	f, err := os.Create(o.cpuProfile)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return errors.Join(err, f.Close())
	}
	o.file = f
	return nil
}

// end stops what begin has started. It does no harm to call it twice.
func (o *observer) end() error {
	var errs []error
	if o.file != nil {
		pprof.StopCPUProfile()
		errs = append(errs, o.file.Close())
		o.file, o.cpuProfile = nil, "" // one profile, of the first measured part
	}
	if o.memProfile != "" {
		errs = append(errs, writeHeapProfile(o.memProfile))
		o.memProfile = ""
	}
	return errors.Join(errs...)
}

func writeHeapProfile(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	runtime.GC()
	return errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
}

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that the server runs as: ours, unless we are root, as whom
// Postgres refuses to run.
type account struct {
	name     string
	uid, gid uint32
	switched bool // another than ours
}

// accountFor returns whom to run as. Root takes the owner of the data that is
// there already, else the user postgres, else nobody.
func accountFor(data string) (account, error) {
	info, err := os.Stat(data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return account{}, fmt.Errorf("look at the data: %w", err)
	}
	us := account{name: strconv.Itoa(os.Geteuid()), uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}
	if us.uid != 0 {
		if info != nil {
			if uid, _ := owner(info); uid != us.uid {
				return account{}, fmt.Errorf("data in %s belongs to user %d and this is user %d: run as that user or as root, or set FILA_DATABASE_URL", data, uid, us.uid)
			}
		}
		return us, nil
	}
	if info != nil {
		if uid, gid := owner(info); uid != 0 {
			return account{name: strconv.Itoa(int(uid)), uid: uid, gid: gid, switched: true}, nil
		}
	}
	return unprivileged()
}

func unprivileged() (account, error) {
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(found.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(found.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return account{name: name, uid: uint32(uid), gid: uint32(gid), switched: true}, nil
		}
	}
	return account{}, errors.New("root may not run Postgres, and this machine has neither a user postgres nor nobody: create one, run as another user, or set FILA_DATABASE_URL")
}

// attributes make a child run as the account, in a process group of its own so
// that Ctrl-C in a terminal reaches us alone, and end with us where the system
// can see to that.
func (a account) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	endWithParent(attributes)
	if a.switched {
		attributes.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attributes
}

// own makes a folder that is the account's and closed to others. One that is
// there already must be the account's: another user could have put it there.
func (a account) own(path string) error {
	switch err := os.Mkdir(path, 0o700); {
	case err == nil && a.switched:
		if err := os.Chown(path, int(a.uid), int(a.gid)); err != nil {
			return fmt.Errorf("give a folder to user %s: %w", a.name, err)
		}
		return nil
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrExist):
		return fmt.Errorf("make a folder for Postgres: %w", err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("look at a folder of Postgres: %w", err)
	}
	if uid, _ := owner(info); !info.IsDir() || uid != a.uid || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a folder of user %s alone: remove it", path, a.name)
	}
	return nil
}

// barrier returns the first folder on the way to path, or path itself, that the
// account may not enter; "" when there is none. The question is put only to a
// user other than ours: what we made ourselves we can reach.
func (a account) barrier(path string) string {
	if !a.switched {
		return ""
	}
	first := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || !a.mayEnter(info) {
			first = dir
		}
		if dir == filepath.Dir(dir) {
			return first
		}
	}
}

func (a account) mayEnter(info fs.FileInfo) bool {
	mode := info.Mode().Perm()
	switch uid, gid := owner(info); {
	case uid == a.uid:
		return mode&0o100 != 0
	case gid == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// trust is how long a daemon that works is waited for: others who do not read their answers may come first, and a report
// of very many Services takes seconds.
const trust = 30 * time.Second

// Ask asks the daemon at the other end of conn, and closes it.
func Ask(conn net.Conn) (Report, error) {
	a, err := ask(conn)
	switch {
	case err != nil:
		return Report{}, fmt.Errorf("ask the daemon: %w", err)
	case a.Report == nil:
		return Report{}, fmt.Errorf("ask the daemon: it answers: %s", a.Error)
	}
	return *a.Report, nil
}

// Succeed asks the daemon at the other end of conn for its place. The daemon says the rest by conn, or closes it.
func Succeed(conn net.Conn) error {
	_, err := io.WriteString(conn, succeed)
	return err
}

func ask(conn net.Conn) (a answer, err error) {
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := conn.SetDeadline(time.Now().Add(trust)); err != nil {
		return a, err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return a, err
	}
	return a, json.NewDecoder(conn).Decode(&a)
}

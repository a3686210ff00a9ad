package nfnl

// OpenWith is Open with a send buffer of about the given size.
var OpenWith = open

// SetReceiveBuffer changes how many bytes of answers are kept.
func (c *Conn) SetReceiveBuffer(bytes int) error { return c.socket.SetReadBuffer(bytes) }

// SetReceiveBuffer changes how many bytes of notifications are kept.
func (l *Listener) SetReceiveBuffer(bytes int) error { return l.socket.SetReadBuffer(bytes) }

// WriteRaw sends bytes as they are.
func (c *Conn) WriteRaw(b []byte) error { return c.socket.send(b) }

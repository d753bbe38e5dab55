// Package udp opens UDP sockets for QUIC: large socket buffers, and receiving
// with UDP_GRO where the kernel has it.
//
// A [Conn] is a net.PacketConn that quic-go takes for what it is, a UDP socket
// whose batch reading it may use: with UDP_GRO the kernel hands over a whole
// train of equal datagrams in one call, and ReadBatch cuts it up. Everything
// that quic-go does for sending (UDP_SEGMENT, ECN, packet info, path MTU) goes
// to the socket unchanged, with quic-go's own fallbacks.
//
// A [PathWatch] tells from a connection's counters that its path is lost, for those
// who own connections.
//
// It is not a QUIC endpoint and reads no packets.
//
// Invariants:
//
//   - Each datagram is delivered once, in the order of its train, with the
//     sender's address and the control messages (ECN, packet info) of the train.
//   - A kernel that refuses an option costs speed, never the socket; Report says
//     what is on.
//
// ReadBatch, ReadFrom and ReadMsgUDP share the rest of the last train and are
// for one goroutine at a time, which is how quic-go reads. Everything else may
// be called from any goroutine.
package udp

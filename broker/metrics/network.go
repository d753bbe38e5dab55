package metrics

import "github.com/prometheus/client_golang/prometheus"

// Network is set once by whoever opens the UDP sockets.
type Network struct {
	ReceiveBuffer       prometheus.Gauge
	ReceiveBufferWanted prometheus.Gauge
	SendBuffer          prometheus.Gauge
	SendBufferWanted    prometheus.Gauge
	SegmentOffload      prometheus.Gauge // UDP_SEGMENT on send: 0 or 1
	ReceiveOffload      prometheus.Gauge // UDP_GRO on receive: 0 or 1
}

func newNetwork(b *builder) Network {
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		b.add(g)
		return g
	}
	return Network{
		ReceiveBuffer:       gauge("felix_udp_receive_buffer_bytes", "Receive buffer of the UDP socket as the kernel granted it; the smallest if there are several."),
		ReceiveBufferWanted: gauge("felix_udp_receive_buffer_wanted_bytes", "Receive buffer that was asked for."),
		SendBuffer:          gauge("felix_udp_send_buffer_bytes", "Send buffer of the UDP socket as the kernel granted it; the smallest if there are several."),
		SendBufferWanted:    gauge("felix_udp_send_buffer_wanted_bytes", "Send buffer that was asked for."),
		SegmentOffload:      gauge("felix_udp_gso_enabled", "1 if datagrams are sent with segmentation offload."),
		ReceiveOffload:      gauge("felix_udp_gro_enabled", "1 if datagrams are received with receive offload."),
	}
}

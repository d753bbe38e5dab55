package wire

// Features is the first feature word: requests a broker serves and messages a
// client can read. Offered words are opaque sets: test bits, never compare.
type Features uint32

// Feature bits of the first word.
const (
	FeatureTopology            Features = 0x0000_0001
	FeatureRedirect            Features = 0x0000_0002
	FeatureCacheDelete         Features = 0x0000_0004
	FeatureConsumerGroup       Features = 0x0000_0008
	FeatureGroupDeadLetters    Features = 0x0000_0010
	FeatureStreamShards        Features = 0x0000_0020
	FeatureCacheWatch          Features = 0x0000_0040
	FeatureCacheWatchRetained  Features = 0x0000_0080
	FeatureCounters            Features = 0x0000_0100
	FeatureIdempotentProducer  Features = 0x0000_0200
	FeatureCacheShards         Features = 0x0000_0400
	FeatureErrorCodes          Features = 0x0000_0800
	FeatureShardMoved          Features = 0x0000_1000
	FeatureUnsupported         Features = 0x0000_2000
	FeatureSequenceReused      Features = 0x0000_4000
	FeaturePublishPipeline     Features = 0x0000_8000
	FeatureAtomicCommit        Features = 0x0001_0000
	FeatureStreamPublishWindow Features = 0x0002_0000
	FeatureShardOwners         Features = 0x0004_0000
	FeatureAckOnCommit         Features = 0x0008_0000
	FeatureGroupConsumer       Features = 0x0010_0000
	FeatureSubscriptionLagged  Features = 0x0020_0000
	FeatureGroupSkipped        Features = 0x0040_0000
	FeatureGroupPublisher      Features = 0x0080_0000
	FeatureGroupAdmin          Features = 0x0100_0000
	FeatureCacheConditional    Features = 0x0200_0000
	FeatureRecordTimestamps    Features = 0x0400_0000
	FeatureGroupClaimControl   Features = 0x0800_0000
	FeaturePublishConditional  Features = 0x1000_0000
	FeatureStreamRead          Features = 0x2000_0000
	FeatureSubscribeQueue      Features = 0x4000_0000
	FeatureExtended            Features = 0x8000_0000 // a second word follows
)

// Has reports whether all bits of want are set.
func (f Features) Has(want Features) bool { return f&want == want }

// FeaturesHi is the second feature word, there only with FeatureExtended.
type FeaturesHi uint32

// Feature bits of the second word.
const (
	FeatureHiInspect       FeaturesHi = 0x1
	FeatureHiExplicitShard FeaturesHi = 0x8
)

// Has reports whether all bits of want are set.
func (f FeaturesHi) Has(want FeaturesHi) bool { return f&want == want }

// What a broker that serves streams advertises; docs/format/wire.md says why
// each bit is there. A publish window is advertised on top, by the server that
// keeps its promises (FeaturePublishPipeline, FeatureStreamPublishWindow).
const (
	// StandaloneFlags: one broker. No FlagAckOwner, as nothing is forwarded.
	StandaloneFlags = FlagPublish | FlagEventsLegacy | FlagEvents | FlagPublishAcked | FlagAck |
		FlagEventOffsets | FlagPublishKeyed | FlagAckCode | FlagAckDetail | FlagEventSkipped | FlagAckOffset
	// StandaloneFeatures: one broker.
	StandaloneFeatures = FeatureStreamShards | FeatureErrorCodes | FeatureShardMoved |
		FeatureUnsupported | FeatureSubscriptionLagged
	// ClusterFlags: a broker that forwards publishes.
	ClusterFlags = StandaloneFlags | FlagAckOwner
	// ClusterFeatures: a broker with others around it.
	ClusterFeatures = StandaloneFeatures | FeatureTopology | FeatureRedirect | FeatureShardOwners
	// IdempotentFlags and IdempotentFeatures are added by a broker that keeps
	// producer state.
	IdempotentFlags    = FlagPublishIdempotent
	IdempotentFeatures = FeatureIdempotentProducer | FeatureSequenceReused
)

// Offer is what a client said in its auth message that it understands.
type Offer struct {
	// Negotiated is false for a client that sent no flags: it gets "ok", never
	// "auth_ok", and is taken to understand BaseFlags and no feature.
	Negotiated bool
	Flags      Flags
	Features   Features
	FeaturesHi FeaturesHi
}

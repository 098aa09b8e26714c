/// process_messages defines the messages between a worker process and the driver's process, before
/// and beside the work of ranks.
///
///   worker process -> admission      Hello, Join       answered by Welcome, Joined
///   worker process -> admission      PeerCut
///   launcher       -> worker host    OpenNetwork       answered by NetworkOpened
///   launcher       -> worker host    StartRank         answered by RankStarted (process_actors.h)
///   launcher       -> worker host    StartActors       answered by ActorsStarted
///   launcher       -> worker host    CloseNetwork
///   fleet          -> worker host    AreYouThere       answered by Here
///
/// HE-1: Hello and Welcome never change, because two builds compare themselves by them. Nothing
///       else is said before both have agreed.
/// These messages keep MS-1 and MS-2 of actors/messages/messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "stagecraft/actors/executor/device/processor.h"
#include "stagecraft/actors/messages/messages.h"
#include "stagecraft/base/error_value.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/futures/routing/routed.h"
#include "stagecraft/futures/transport/zmq/data_port.h"

namespace stagecraft {

/// The version of these messages and those of actors/messages/messages.h. Increase it with every
/// change of their form or meaning.
inline constexpr std::uint32_t kProtocol = 12;

struct Hello {
  std::uint32_t protocol = kProtocol;
  std::string fingerprint;  ///< of the build (build_fingerprint)
};

struct Welcome {
  std::uint32_t protocol = kProtocol;
  std::string fingerprint;
  std::string refusal;  ///< empty: join
};

/// Join is sent by a worker process that is ready for ranks.
struct Join {
  std::int32_t place = -1;        ///< the cluster's place it was started for; -1: any
  std::int64_t incarnation = -1;  ///< the incarnation of that place; -1: any
  PortAddress port;
  std::int64_t process = 0;  ///< its id
  std::string host;          ///< the name of its host
  ProcessorFacts processor = {};
};

struct Joined {
  ErrorChain error;
  bool later = false;  ///< there is no place for it yet: it may ask again
  bool taken = false;  ///< and another worker has it
};

struct PeerPlace {
  Rank rank;  ///< or kDriver
  PortAddress port;
};

/// OpenNetwork makes the process a part of a crew's network. It is sent again when a peer has
/// moved.
struct OpenNetwork {
  NetworkId network;
  std::int32_t ranks = 0;
  std::vector<PeerPlace> elsewhere;  ///< all peers that are not in this process
  std::string capability = {};       ///< that holds the process (processor.h); empty: none
};

struct NetworkOpened {
  ErrorChain error;
};

/// StartRank starts a worker for a rank of an open network.
struct StartRank {
  NetworkId network;
  Rank rank;
};

/// StartActors starts a rank's side of remote actors on an open network.
struct StartActors {
  NetworkId network;
  Rank rank;
  Epoch generation;  ///< of this side, as the driver counts them
};

struct ActorsStarted {
  ErrorChain error;
};

struct CloseNetwork {
  NetworkId network;
};

/// PeerCut reports that the way for tensors from this process to a peer is cut (DP-6): tensors on
/// it may be lost.
struct PeerCut {
  std::string key;  ///< of the peer's port
  ErrorChain why;
};

/// AreYouThere asks a process that another one does not reach.
struct AreYouThere {};

struct Here {};

template <class V>
decltype(auto) visit_fields(Hello& m, V&& v) {
  return v(m.protocol, m.fingerprint);
}
template <class V>
decltype(auto) visit_fields(Welcome& m, V&& v) {
  return v(m.protocol, m.fingerprint, m.refusal);
}
template <class V>
decltype(auto) visit_fields(Join& m, V&& v) {
  return v(m.place, m.incarnation, m.port, m.process, m.host, m.processor);
}
template <class V>
decltype(auto) visit_fields(Joined& m, V&& v) {
  return v(m.error, m.later, m.taken);
}
template <class V>
decltype(auto) visit_fields(PeerPlace& m, V&& v) {
  return v(m.rank, m.port);
}
template <class V>
decltype(auto) visit_fields(OpenNetwork& m, V&& v) {
  return v(m.network, m.ranks, m.elsewhere, m.capability);
}
template <class V>
decltype(auto) visit_fields(NetworkOpened& m, V&& v) {
  return v(m.error);
}
template <class V>
decltype(auto) visit_fields(StartRank& m, V&& v) {
  return v(m.network, m.rank);
}
template <class V>
decltype(auto) visit_fields(StartActors& m, V&& v) {
  return v(m.network, m.rank, m.generation);
}
template <class V>
decltype(auto) visit_fields(ActorsStarted& m, V&& v) {
  return v(m.error);
}
template <class V>
decltype(auto) visit_fields(CloseNetwork& m, V&& v) {
  return v(m.network);
}

template <class V>
decltype(auto) visit_fields(PeerCut& m, V&& v) {
  return v(m.key, m.why);
}
template <class V>
decltype(auto) visit_fields(AreYouThere&, V&& v) {
  return v();
}
template <class V>
decltype(auto) visit_fields(Here&, V&& v) {
  return v();
}

/// Lists these message types. CAF registers them from this list, and the test of MS-1 examines it.
using ProcessMessageTypes = std::tuple<Hello,
                                       Welcome,
                                       Join,
                                       Joined,
                                       OpenNetwork,
                                       NetworkOpened,
                                       StartRank,
                                       StartActors,
                                       ActorsStarted,
                                       CloseNetwork,
                                       PeerCut,
                                       AreYouThere,
                                       Here>;

template <>
inline constexpr std::string_view kWireName<Hello> = "stagecraft.Hello";
template <>
inline constexpr std::string_view kWireName<Welcome> = "stagecraft.Welcome";
template <>
inline constexpr std::string_view kWireName<Join> = "stagecraft.Join";
template <>
inline constexpr std::string_view kWireName<Joined> = "stagecraft.Joined";
template <>
inline constexpr std::string_view kWireName<OpenNetwork> = "stagecraft.OpenNetwork";
template <>
inline constexpr std::string_view kWireName<NetworkOpened> = "stagecraft.NetworkOpened";
template <>
inline constexpr std::string_view kWireName<StartRank> = "stagecraft.StartRank";
template <>
inline constexpr std::string_view kWireName<StartActors> = "stagecraft.StartActors";
template <>
inline constexpr std::string_view kWireName<ActorsStarted> = "stagecraft.ActorsStarted";
template <>
inline constexpr std::string_view kWireName<CloseNetwork> = "stagecraft.CloseNetwork";
template <>
inline constexpr std::string_view kWireName<PeerCut> = "stagecraft.PeerCut";
template <>
inline constexpr std::string_view kWireName<AreYouThere> = "stagecraft.AreYouThere";
template <>
inline constexpr std::string_view kWireName<Here> = "stagecraft.Here";

}  // namespace stagecraft

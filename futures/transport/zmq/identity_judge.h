/// IdentityJudge decides who may send to a data port: only peers with an admitted key (DP-1).
///
///   a client connects -> CURVE: it proves that it has a key's secret half -> ZeroMQ asks here
///     -> the key is admitted: the answer is yes; the key names the sender of all its messages
///     -> it is not: the question waits for its admission, until ZeroMQ ends the connection
///
/// An unknown key gets no answer. So the client learns nothing. A PortLoop owns the judge, and its
/// thread runs all of it. The protocol is ZAP (RFC 27 of ZeroMQ).
#pragma once

#include <deque>
#include <string>

#include "stagecraft/futures/transport/zmq/port_counts.h"

namespace zmq {
class socket_t;
}  // namespace zmq

namespace stagecraft {

class Peers;
class PortSockets;

class IdentityJudge {
 public:
  /// The arguments must outlive this object.
  IdentityJudge(PortSockets& sockets, const Peers& admitted, PortCounter& counter)
      : sockets_(sockets), admitted_(admitted), counter_(counter) {}

  /// Takes all questions that have arrived. Answers the questions about admitted keys and keeps the
  /// others.
  void judge();
  /// Answers the kept questions about a key that is admitted now.
  void admit(const std::string& key);

 private:
  struct Question {
    std::string key;
    std::string asker;   ///< ZeroMQ's name of the connection
    std::string number;  ///< of the request
  };

  void judge(Question question);
  void say_yes(const Question& question);

  PortSockets& sockets_;
  const Peers& admitted_;
  PortCounter& counter_;
  std::deque<Question> kept_;  ///< oldest first
};

}  // namespace stagecraft

#include "stagecraft/futures/transport/zmq/identity_judge.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <zmq.hpp>

#include "stagecraft/base/log.h"
#include "stagecraft/futures/transport/zmq/peers.h"
#include "stagecraft/futures/transport/zmq/sockets.h"

namespace stagecraft {
namespace {

/// The most questions that are kept; beyond it the oldest is never answered.
constexpr std::size_t kMostQuestions = 1024;

/// A request has these parts: asker, an empty part, version, number, domain, address, identity,
/// mechanism, key.
constexpr std::size_t kParts = 9;
constexpr std::size_t kAsker = 0, kNumber = 3;
constexpr std::size_t kKeyBytes = 32;

}  // namespace

void IdentityJudge::judge() {
  while (true) {
    std::vector<zmq::message_t> parts;
    do {
      zmq::message_t part;
      if (!sockets_.questions().recv(part, zmq::recv_flags::dontwait)) {
        return;
      }
      parts.push_back(std::move(part));
    } while (parts.back().more());
    if (parts.size() != kParts || parts.back().size() != kKeyBytes) {
      continue;
    }
    std::array<char, 41> key{};
    zmq_z85_encode(key.data(), parts.back().data<std::uint8_t>(), kKeyBytes);
    judge({.key = key.data(),
           .asker = parts[kAsker].to_string(),
           .number = parts[kNumber].to_string()});
  }
}

void IdentityJudge::judge(Question question) {
  if (admitted_.contains(question.key)) {
    say_yes(question);
    return;
  }
  const std::int64_t held =
      counter_.change([](PortCounts& counts) { return ++counts.connections_held; });
  if (is_logged(held)) {
    log(Level::Info,
        "connection of a key that is not admitted",
        {{"endpoint", sockets_.address().endpoint}, {"key", question.key}, {"held", held}});
  }
  kept_.push_back(std::move(question));
  if (kept_.size() > kMostQuestions) {
    kept_.pop_front();
  }
}

void IdentityJudge::admit(const std::string& key) {
  std::erase_if(kept_, [this, &key](const Question& question) {
    const bool is_answered = question.key == key;
    if (is_answered) {
      say_yes(question);
    }
    return is_answered;
  });
}

void IdentityJudge::say_yes(const Question& question) {
  const std::array<std::string_view, 8> answer{
      question.asker, "", "1.0", question.number, "200", "OK", question.key, ""};
  for (std::size_t i = 0; i < answer.size(); ++i) {
    static_cast<void>(sockets_.questions().send(
        zmq::buffer(answer[i]),
        zmq::send_flags::dontwait |
            (i + 1 < answer.size() ? zmq::send_flags::sndmore : zmq::send_flags::none)));
  }
}

}  // namespace stagecraft

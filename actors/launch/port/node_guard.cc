#include "stagecraft/actors/launch/port/node_guard.h"

#include <algorithm>

#include <caf/binary_deserializer.hpp>
#include <caf/message_id.hpp>

namespace stagecraft {
namespace {

using caf::io::basp::message_type;

/// Moves at most `count` bytes from the begin of `bytes` to the end of `to`. Returns their number.
std::size_t move_bytes(std::string_view& bytes, std::size_t count, std::string& to) {
  const std::size_t moved = std::min(count, bytes.size());
  to += bytes.substr(0, moved);
  bytes.remove_prefix(moved);
  return moved;
}

caf::binary_deserializer reader_of(const std::string& bytes) {
  return {static_cast<caf::execution_unit*>(nullptr), bytes.data(), bytes.size()};
}

}  // namespace

// ---- nodes --------------------------------------------------------------------------------------

std::shared_ptr<PeerNodes::Node> PeerNodes::enter(const caf::node_id& node,
                                                  const std::string& worker) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(nodes_, [](const auto& known) { return known.second.expired(); });
  std::weak_ptr<Node>& known = nodes_[node];
  std::shared_ptr<Node> entered = known.lock();
  if (entered == nullptr) {
    entered = std::make_shared<Node>(Node{.worker = worker, .asked = {}});
    known = entered;
  }
  return entered->worker == worker ? entered : nullptr;
}

std::string PeerNodes::worker_at(const caf::node_id& node) const {
  const std::scoped_lock lock(mutex_);
  const auto found = nodes_.find(node);
  const std::shared_ptr<Node> known = found == nodes_.end() ? nullptr : found->second.lock();
  return known == nullptr ? "" : known->worker;
}

// ---- headers ------------------------------------------------------------------------------------

bool BaspReader::take(std::string_view& bytes) {
  const std::size_t skipped = std::min(rest_left_, bytes.size());
  rest_left_ -= skipped;
  bytes.remove_prefix(skipped);
  if (bytes.empty()) {
    return false;
  }
  if (head_left_ == 0) {
    move_bytes(bytes, caf::io::basp::header_size - read_.size(), read_);
    if (read_.size() < caf::io::basp::header_size) {
      return false;
    }
    if (reader_of(read_)(header_)) {
      header_ = {};  // cannot be: numbers of a fixed size
    }
    read_.clear();
    head_.clear();
    head_left_ = std::min<std::size_t>(header_.payload_len, kHead);
    rest_left_ = 0;
  }
  head_left_ -= move_bytes(bytes, head_left_, head_);
  if (head_left_ > 0) {
    return false;
  }
  rest_left_ = header_.payload_len - head_.size();
  return true;
}

// ---- the guard ----------------------------------------------------------------------------------

std::string_view NodeGuard::hear(const std::string& worker, std::string_view bytes) {
  while (heard_.take(bytes)) {
    if (const std::string_view why = judge(worker); !why.empty()) {
      return why;
    }
  }
  return {};
}

void NodeGuard::say(std::string_view bytes) {
  while (said_.take(bytes)) {
    const caf::message_id id{said_.header().operation_data};
    if (node_ != nullptr && said_.header().operation == message_type::direct_message &&
        id.is_request()) {
      node_->asked.emplace(said_.header().source_actor, id.request_id().integer_value());
    }
  }
}

std::string_view NodeGuard::judge(const std::string& worker) {
  const message_type kind = heard_.header().operation;
  if (node_ == nullptr && kind != message_type::client_handshake) {
    return "it speaks before its handshake";
  }
  switch (kind) {
    case message_type::client_handshake:
      return judge_handshake(worker);
    case message_type::heartbeat:
      return {};
    case message_type::direct_message:
      return is_asked() ? "" : "it answers what it was not asked";
    case message_type::monitor_message:
    case message_type::down_message:
      return is_between_ends() ? "" : "it speaks for another process";
    default:
      return "it passes on messages";  // keeps NG-2
  }
}

/// Keeps NG-1.
std::string_view NodeGuard::judge_handshake(const std::string& worker) {
  caf::node_id named;
  caf::binary_deserializer source = reader_of(heard_.head());
  if (source(named) || source.remaining() > 0 || !named) {
    return "its first message cannot be read";
  }
  if (node_ == nullptr && named != here_) {
    node_ = nodes_->enter(named, worker);
    there_ = named;
  }
  return node_ != nullptr && there_ == named ? "" : "it speaks for another process";
}

/// Keeps NG-2.
bool NodeGuard::is_between_ends() const {
  caf::node_id from, to;
  caf::binary_deserializer source = reader_of(heard_.head());
  return !source(from, to) && from == there_ && to == here_;
}

/// Keeps NG-3.
bool NodeGuard::is_asked() {
  const caf::io::basp::header& header = heard_.header();
  const caf::message_id id{header.operation_data};
  return !id.is_response() ||
         node_->asked.erase({header.dest_actor, id.request_id().integer_value()}) == 1;
}

}  // namespace stagecraft

#include "stagecraft/actors/launch/port/handshake_bound.h"

#include <algorithm>

namespace stagecraft {
namespace {

constexpr unsigned char kHandshakeRecord = 22, kEncryptedRecord = 23;

/// Moves bytes into a header until it is complete. Returns whether it is.
template <std::size_t kSize>
bool fill(std::array<unsigned char, kSize>& header, std::size_t& has, std::string_view& bytes) {
  const std::size_t count = std::min(kSize - has, bytes.size());
  std::copy_n(bytes.begin(), count, header.begin() + has);
  has += count;
  bytes.remove_prefix(count);
  return has == kSize;
}

}  // namespace

bool HandshakeBound::take(std::string_view bytes) {
  while (!bytes.empty() && !is_encrypted_) {
    if (record_left_ == 0) {
      if (!fill(record_, record_has_, bytes)) {
        return true;
      }
      record_has_ = 0;
      record_left_ = record_[3] * std::size_t{256} + record_[4];
      is_encrypted_ = record_[0] == kEncryptedRecord;
    } else if (!take_of_record(bytes)) {
      return false;
    }
  }
  return true;
}

/// A message may begin and end anywhere in a record.
bool HandshakeBound::take_of_record(std::string_view& bytes) {
  std::string_view part = bytes.substr(0, record_left_);
  bytes.remove_prefix(part.size());
  record_left_ -= part.size();
  while (!part.empty() && record_[0] == kHandshakeRecord) {
    if (message_left_ == 0) {
      if (!fill(message_, message_has_, part)) {
        return true;
      }
      message_has_ = 0;
      message_left_ = (message_[1] * std::size_t{256} + message_[2]) * 256 + message_[3];
      if (message_left_ > kMostOfHandshakeMessage) {
        return false;
      }
    } else {
      const std::size_t count = std::min(message_left_, part.size());
      message_left_ -= count;
      part.remove_prefix(count);
    }
  }
  return true;
}

}  // namespace stagecraft

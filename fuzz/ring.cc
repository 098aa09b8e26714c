/// Rings between processes: what is written comes back in order, and a reader of memory into which
/// anything was written refuses it or returns messages, without touching other memory.
///
/// An input is a list of steps. Each begins with a byte that says what is done.
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "stagecraft/base/error.h"
#include "stagecraft/futures/transport/shared_memory/frame_ring.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"

namespace sc = stagecraft;

namespace {

constexpr std::size_t kMemory = 1024;

/// Steps reads an input; it goes on with zeros at its end.
class Steps {
 public:
  explicit Steps(std::string_view left) : left_(left) {}

  [[nodiscard]] bool done() const { return left_.empty(); }
  template <class Number>
  Number next() {
    Number number{};
    const std::string_view bytes = left_.substr(0, sizeof number);
    std::memcpy(&number, bytes.data(), bytes.size());
    left_.remove_prefix(bytes.size());
    return number;
  }
  std::string text() {
    const auto length = next<std::uint8_t>();
    const std::string_view bytes = left_.substr(0, length);
    left_.remove_prefix(bytes.size());
    return std::string(bytes);
  }

 private:
  std::string_view left_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Steps steps({reinterpret_cast<const char*>(data), size});
  struct alignas(64) Memory {
    std::array<std::byte, kMemory> bytes{};
  };
  const auto memory = std::make_unique<Memory>();
  sc::RingWriter writer(memory->bytes);
  sc::RingReader reader(memory->bytes);
  std::deque<std::pair<std::string, std::string>> written;
  bool is_spoiled = false;
  while (!steps.done()) {
    switch (steps.next<std::uint8_t>() % 4) {
      case 0: {
        const std::string header = steps.text(), bytes = steps.text();
        if (writer.write({header, bytes})) {
          written.emplace_back(header, bytes);
        }
        break;
      }
      case 1:
        try {
          const auto message = reader.next();
          sc::fuzz::require(is_spoiled || message.has_value() == !written.empty(),
                            "a message is there once it is written");
          if (message) {
            sc::fuzz::require(message->header.size() + message->bytes.size() <= kMemory,
                              "a message has a limit");
            sc::fuzz::require(is_spoiled || (message->header == written.front().first &&
                                             message->bytes == written.front().second),
                              "messages come back in order");
            reader.pop();
          }
          if (!is_spoiled && !written.empty()) {
            written.pop_front();
          }
        } catch (const sc::Error& error) {
          sc::fuzz::require(is_spoiled, "what a writer wrote is not refused");
          sc::fuzz::require(error.code() == sc::Errc::TransportRefused, "it is refused as such");
          return 0;
        }
        break;
      case 2: {
        const std::size_t at = steps.next<std::uint16_t>() % (kMemory - sizeof(std::uint64_t));
        const auto number = steps.next<std::uint64_t>();
        std::memcpy(memory->bytes.data() + at, &number, sizeof number);
        is_spoiled = true;
        break;
      }
      default:
        if (reader.fall_asleep() && writer.write({"", ""})) {
          sc::fuzz::require(writer.finds_sleeper(), "a writer finds the reader asleep");
          written.emplace_back();
        }
        break;
    }
  }
  return 0;
}

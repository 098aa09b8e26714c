#include "stagecraft/actors/launch/port/build_fingerprint.h"

#include <cstdint>
#include <string_view>
#include <tuple>
#include <typeinfo>

#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include "stagecraft/actors/messages/caf_types.h"

namespace stagecraft {
namespace {

/// Hashes the layout of a record: the types of its fields, down to those without fields.
class LayoutHash {
 public:
  template <class T>
  void add(T& value) {
    if constexpr (requires { visit_fields(value, *this); }) {
      add_text("{");
      visit_fields(value, *this);
      add_text("}");
    } else if constexpr (requires {
                           value.emplace_back();
                           value.push_back(value.front());
                         }) {
      add_text("[");
      typename T::value_type element{};
      add(element);
    } else {
      add_text(typeid(T).name());
    }
  }
  template <class... Fields>
  void operator()(Fields&... fields) {
    (add(fields), ...);
  }
  void add_text(std::string_view text) {
    for (const char c : text) {
      hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 1099511628211ULL;  // FNV-1a
    }
  }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 14695981039346656037ULL;
};

std::uint64_t message_layout() {
  LayoutHash hash;
  const auto add = [&]<class... M>(std::tuple<M...>*) {
    const auto one = [&]<class Message>(Message message) {
      hash.add_text(kWireName<Message>);
      hash.add(message);
    };
    (one(M{}), ...);
  };
  add(static_cast<MessageTypes*>(nullptr));
  add(static_cast<ProcessMessageTypes*>(nullptr));
  return hash.value();
}

}  // namespace

std::string build_fingerprint() {
  return fmt::format("stagecraft {}, LibTorch {}, CAF {}, compiler {}, messages {:016x}",
                     STAGECRAFT_VERSION,
                     TORCH_VERSION,
                     CAF_VERSION,
                     __VERSION__,
                     message_layout());
}

std::string refusal_of(const Hello& worker, const Welcome& driver) {
  if (worker.protocol != driver.protocol) {
    return "it speaks another protocol";
  }
  return worker.fingerprint == driver.fingerprint ? "" : "it is another build";
}

std::string refusal_text(const Hello& worker, const Welcome& driver) {
  return fmt::format("{} (the worker: protocol {}, {}; the driver: protocol {}, {})",
                     driver.refusal,
                     worker.protocol,
                     worker.fingerprint,
                     driver.protocol,
                     driver.fingerprint);
}

}  // namespace stagecraft

#include "stagecraft/compiler/wire/writer.h"

#include <array>
#include <bit>
#include <limits>
#include <utility>

#include <msgpack.hpp>

#include "stagecraft/base/check.h"

namespace stagecraft::wire {
namespace {

/// Appender is the stream that a packer writes to.
struct Appender {
  std::string* bytes;
  void write(const char* data, std::size_t size) { bytes->append(data, size); }
};

/// Calls `pack` with a packer that appends to `bytes`.
template <class Pack>
void append(std::string& bytes, Pack&& pack) {
  Appender to{&bytes};
  pack(msgpack::packer<Appender>(to));
}

std::uint32_t length_of(std::size_t count) {
  SC_CHECK(count <= std::numeric_limits<std::uint32_t>::max(),
           "msgpack counts the elements of a list in 32 bits");
  return static_cast<std::uint32_t>(count);
}

}  // namespace

void Writer::nil() {
  append(bytes_, [](auto to) { to.pack_nil(); });
}

void Writer::boolean(bool value) {
  append(bytes_, [&](auto to) { value ? to.pack_true() : to.pack_false(); });
}

void Writer::integer(std::int64_t value) {
  append(bytes_, [&](auto to) { to.pack_int64(value); });
}

void Writer::natural(std::uint64_t value) {
  append(bytes_, [&](auto to) { to.pack_uint64(value); });
}

void Writer::number(double value) {
  // Do not use the packer: it writes whole numbers as integers and so loses the sign of -0 (WW-1).
  auto bits = std::bit_cast<std::uint64_t>(value);
  std::array<char, 9> packed{};
  for (std::size_t i = packed.size(); i-- > 1;) {
    packed[i] = static_cast<char>(bits & 0xFFU);
    bits >>= 8U;
  }
  packed[0] = static_cast<char>(0xcb);
  bytes_.append(packed.data(), packed.size());
}

void Writer::text(std::string_view value) {
  append(bytes_, [&](auto to) { to.pack_str(length_of(value.size())); });
  bytes_.append(value);
}

void Writer::array(std::size_t count) {
  append(bytes_, [&](auto to) { to.pack_array(length_of(count)); });
}

void Writer::map(std::size_t count) {
  append(bytes_, [&](auto to) { to.pack_map(length_of(count)); });
}

std::string Writer::take() {
  return std::exchange(bytes_, {});
}

}  // namespace stagecraft::wire

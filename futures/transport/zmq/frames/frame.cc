#include "stagecraft/futures/transport/zmq/frames/frame.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <msgpack.hpp>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// Listed by name, because LibTorch may change the numbers of its types.
constexpr std::array kTypes{
    at::kByte,           at::kChar,          at::kShort,           at::kInt,
    at::kLong,           at::kUInt16,        at::kUInt32,          at::kUInt64,
    at::kHalf,           at::kBFloat16,      at::kFloat,           at::kDouble,
    at::kComplexHalf,    at::kComplexFloat,  at::kComplexDouble,   at::kBool,
    at::kFloat8_e5m2,    at::kFloat8_e4m3fn, at::kFloat8_e5m2fnuz, at::kFloat8_e4m3fnuz,
    at::kFloat8_e8m0fnu,
};

constexpr std::uint32_t kFields = 17;
constexpr std::uint32_t kFieldsWithSlot = kFields + 1, kSlotFields = 4;

template <class... Parts>
Error malformed(fmt::format_string<Parts...> format, Parts&&... parts) {
  return Error(Errc::TransportRefused,
               "malformed frame: " + fmt::format(format, std::forward<Parts>(parts)...) +
                   "; run the same release of Stagecraft in all processes");
}

/// Reads the fields of a header in order.
class Fields {
 public:
  explicit Fields(const msgpack::object_array& array) : array_(array) {}

  std::uint64_t natural() { return natural_in(next()); }

  std::int64_t integer() {
    const msgpack::object& field = next();
    return integer_in(field);
  }

  template <class Id>
  Id id() {
    using Int = decltype(Id{}.value);
    const std::int64_t value = integer();
    if (value < std::numeric_limits<Int>::min() || value > std::numeric_limits<Int>::max()) {
      throw malformed("field {} is {}, which is out of range", at_, value);
    }
    return Id(static_cast<Int>(value));
  }

  at::ScalarType dtype() {
    const msgpack::object& field = next();
    if (field.type != msgpack::type::STR) {
      throw malformed("field {} is not the name of a dtype", at_);
    }
    const std::string_view name(field.via.str.ptr, field.via.str.size);
    const auto found = std::ranges::find_if(
        kTypes, [name](at::ScalarType type) { return name == c10::toString(type); });
    if (found == kTypes.end()) {
      throw malformed("its dtype, a name of {} characters, is unknown", name.size());
    }
    return *found;
  }

  std::vector<std::int64_t> sizes() {
    const msgpack::object& field = next();
    if (field.type != msgpack::type::ARRAY || field.via.array.size > kMostDimensions) {
      throw malformed("field {} is not a list of at most {} sizes", at_, kMostDimensions);
    }
    std::vector<std::int64_t> sizes;
    for (std::uint32_t i = 0; i < field.via.array.size; ++i) {
      sizes.push_back(integer_in(field.via.array.ptr[i]));
    }
    return sizes;
  }

  SlotRef slot() {
    const msgpack::object& field = next();
    if (field.type != msgpack::type::ARRAY || field.via.array.size != kSlotFields) {
      throw malformed("field {} is not a slot of {} numbers", at_, kSlotFields);
    }
    const msgpack::object* const numbers = field.via.array.ptr;
    const std::uint64_t number = natural_in(numbers[1]);
    if (number > std::numeric_limits<std::uint32_t>::max()) {
      throw malformed("there is no slot {}", number);
    }
    return {.arena = ArenaId(natural_in(numbers[0])),
            .number = static_cast<std::uint32_t>(number),
            .offset = integer_in(numbers[2]),
            .capacity = integer_in(numbers[3])};
  }

 private:
  const msgpack::object& next() { return array_.ptr[at_++]; }

  std::uint64_t natural_in(const msgpack::object& field) const {
    if (field.type != msgpack::type::POSITIVE_INTEGER) {
      throw malformed("field {} is not a number of 0 or more", at_);
    }
    return field.via.u64;
  }

  std::int64_t integer_in(const msgpack::object& field) const {
    if (field.type == msgpack::type::NEGATIVE_INTEGER) {
      return field.via.i64;
    }
    if (field.type != msgpack::type::POSITIVE_INTEGER ||
        field.via.u64 > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      throw malformed("field {} is not an integer of 64 bits", at_);
    }
    return static_cast<std::int64_t>(field.via.u64);
  }

  const msgpack::object_array& array_;
  std::uint32_t at_ = 0;
};

/// The products that make up strides must fit as well, so that a size of 0 hides no overflow.
void check_sizes(const FrameHeader& header) {
  std::int64_t strides = static_cast<std::int64_t>(c10::elementSize(header.dtype));
  bool empty = false;
  for (const std::int64_t size : header.sizes) {
    if (size < 0) {
      throw malformed("one of its sizes is {}", size);
    }
    empty = empty || size == 0;
    if (__builtin_mul_overflow(strides, std::max<std::int64_t>(size, 1), &strides)) {
      throw malformed("its sizes are larger than memory can be");
    }
  }
  if (header.total != (empty ? 0 : strides)) {
    throw malformed("its sizes make {} bytes, but it says {}", empty ? 0 : strides, header.total);
  }
  if (header.slot) {
    if (header.offset != 0 || header.chunk != header.total || header.total == 0 ||
        header.slot->offset < 0 || header.slot->capacity < header.total) {
      throw malformed("a slot of {} bytes at byte {} does not hold a tensor of {} bytes",
                      header.slot->capacity,
                      header.slot->offset,
                      header.total);
    }
    return;
  }
  if (header.chunk < 0 || header.chunk > kLargestChunk || header.offset < 0 ||
      header.offset > header.total || header.chunk > header.total - header.offset ||
      (header.chunk == 0 && header.total > 0)) {
    throw malformed("{} bytes at byte {} are not a chunk of a tensor of {} bytes",
                    header.chunk,
                    header.offset,
                    header.total);
  }
}

FrameHeader header_in(const msgpack::object& object) {
  if (object.type != msgpack::type::ARRAY || object.via.array.size == 0) {
    throw malformed("its header is not a list");
  }
  Fields fields(object.via.array);
  const std::uint64_t version = fields.natural();
  if (version != kFrameVersion) {
    throw malformed(
        "it has version {}, but this process speaks version {}", version, kFrameVersion);
  }
  if (object.via.array.size != kFields && object.via.array.size != kFieldsWithSlot) {
    throw malformed(
        "it has {} fields, expected {} or {}", object.via.array.size, kFields, kFieldsWithSlot);
  }
  FrameHeader header;
  header.link = fields.natural();
  header.sequence = fields.natural();
  header.transfer = fields.natural();
  header.network = NetworkId(fields.natural());
  header.from = fields.id<Rank>();
  header.to = fields.id<Rank>();
  header.tag.plan = fields.id<PlanId>();
  header.tag.epoch = fields.id<Epoch>();
  header.tag.submission = fields.id<Submission>();
  header.tag.edge = fields.id<EdgeId>();
  header.tag.microbatch = fields.id<Microbatch>();
  header.dtype = fields.dtype();
  header.sizes = fields.sizes();
  header.total = fields.integer();
  header.offset = fields.integer();
  header.chunk = fields.integer();
  if (object.via.array.size == kFieldsWithSlot) {
    header.slot = fields.slot();
  }
  check_sizes(header);
  return header;
}

}  // namespace

std::string encode_frame(const FrameHeader& header) {
  msgpack::sbuffer out;
  msgpack::packer<msgpack::sbuffer> pack(out);
  pack.pack_array(header.slot ? kFieldsWithSlot : kFields);
  pack.pack(kFrameVersion);
  pack.pack(header.link);
  pack.pack(header.sequence);
  pack.pack(header.transfer);
  pack.pack(header.network.value);
  pack.pack(header.from.value);
  pack.pack(header.to.value);
  pack.pack(header.tag.plan.value);
  pack.pack(header.tag.epoch.value);
  pack.pack(header.tag.submission.value);
  pack.pack(header.tag.edge.value);
  pack.pack(header.tag.microbatch.value);
  const std::string_view dtype = c10::toString(header.dtype);
  pack.pack_str(static_cast<std::uint32_t>(dtype.size()));
  pack.pack_str_body(dtype.data(), static_cast<std::uint32_t>(dtype.size()));
  pack.pack_array(static_cast<std::uint32_t>(header.sizes.size()));
  for (const std::int64_t size : header.sizes) {
    pack.pack(size);
  }
  pack.pack(header.total);
  pack.pack(header.offset);
  pack.pack(header.chunk);
  if (header.slot) {
    pack.pack_array(kSlotFields);
    pack.pack(header.slot->arena.value);
    pack.pack(header.slot->number);
    pack.pack(header.slot->offset);
    pack.pack(header.slot->capacity);
  }
  return {out.data(), out.size()};
}

FrameHeader decode_frame(std::string_view bytes) {
  if (bytes.size() > kLongestHeader) {
    throw malformed("its header has {} bytes, expected at most {}", bytes.size(), kLongestHeader);
  }
  try {
    std::size_t end = 0;
    const msgpack::unpack_limit limit(
        std::max<std::size_t>(kFieldsWithSlot, kMostDimensions), 0, 32, 0, 0, 2);
    const msgpack::object_handle unpacked =
        msgpack::unpack(bytes.data(), bytes.size(), end, nullptr, nullptr, limit);
    if (end != bytes.size()) {
      throw malformed("{} bytes follow its header", bytes.size() - end);
    }
    return header_in(unpacked.get());
  } catch (const msgpack::unpack_error& error) {
    throw malformed("its header is not msgpack: {}", error.what());
  }
}

bool has_frames(at::ScalarType dtype) {
  return std::ranges::find(kTypes, dtype) != kTypes.end();
}

}  // namespace stagecraft

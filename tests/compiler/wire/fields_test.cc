/// Tests that records go over the wire field by field, and that no other bytes make one.
#include "stagecraft/compiler/wire/fields.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::wire {

enum class Fruit : std::uint8_t { Apple, Pear, Plum };
template <>
inline constexpr Fruit kLast<Fruit> = Fruit::Plum;

namespace {

using Catch::Matchers::ContainsSubstring;

struct PlainWriter : Writer {
  using Leaves = std::tuple<>;
};
struct PlainReader : Reader {
  using Leaves = std::tuple<>;
  using Reader::Reader;
};

struct Point {
  int x = 0;
  double y = 0;
  friend bool operator==(const Point&, const Point&) = default;
};
template <class V>
decltype(auto) visit_fields(Point& m, V&& v) {
  return v(m.x, m.y);
}

struct Everything {
  bool flag = false;
  std::uint8_t small = 0;
  Fruit fruit = Fruit::Apple;
  StageId stage;
  std::chrono::milliseconds time{0};
  std::string text;
  std::vector<Point> points;
  std::vector<bool> flags;
  std::map<std::string, int> numbers;
  std::optional<Point> some, none;
  std::variant<int, Point, std::string> either;
  friend bool operator==(const Everything&, const Everything&) = default;
};
template <class V>
decltype(auto) visit_fields(Everything& m, V&& v) {
  return v(m.flag,
           m.small,
           m.fruit,
           m.stage,
           m.time,
           m.text,
           m.points,
           m.flags,
           m.numbers,
           m.some,
           m.none,
           m.either);
}

template <class T>
std::string bytes_of(const T& value) {
  PlainWriter out;
  put(out, value);
  return out.take();
}

template <class T>
T read_as(const std::string& bytes) {
  PlainReader in(bytes);
  T value{};
  get(in, value);
  in.end();
  return value;
}

template <class T>
std::string refused_as(const std::string& bytes) {
  return refusal([&] { (void)read_as<T>(bytes); }, Errc::WireFormat);
}

Everything everything() {
  return {.flag = true,
          .small = 255,
          .fruit = Fruit::Plum,
          .stage = StageId(3),
          .time = std::chrono::milliseconds(-5),
          .text = "text",
          .points = {{1, 0.5}, {-2, -0.0}},
          .flags = {true, false},
          .numbers = {{"a", 1}, {"b", -1}},
          .some = Point{7, 7},
          .none = std::nullopt,
          .either = Point{8, 8}};
}

}  // namespace

TEST_CASE("FW-1: a record comes back as it was, and equal records are equal bytes",
          "[compiler][wire]") {
  const Everything sent = everything();
  const std::string bytes = bytes_of(sent);
  CHECK(read_as<Everything>(bytes) == sent);
  CHECK(bytes_of(read_as<Everything>(bytes)) == bytes);
}

TEST_CASE("bytes that do not fit a record are refused", "[compiler][wire][hostile]") {
  CHECK_THAT(refused_as<Point>(bytes_of(everything())),
             ContainsSubstring("a record has 2 values, not 12"));
  CHECK_THAT(refused_as<std::uint8_t>(bytes_of(256)), ContainsSubstring("256 does not fit"));
  CHECK_THAT(refused_as<std::uint8_t>(bytes_of(-1)), ContainsSubstring("-1 does not fit"));
  CHECK_THAT(refused_as<Fruit>(bytes_of(3)),
             ContainsSubstring("an enumeration that ends at 2 has no 3"));
  CHECK_THAT(refused_as<Fruit>(bytes_of(-1)), ContainsSubstring("has no -1"));
  using Either = std::variant<int, std::string>;
  CHECK_THAT(refused_as<Either>(bytes_of(std::variant<int, int, int>(std::in_place_index<2>, 1))),
             ContainsSubstring("expected one of 2 alternatives, found number 2"));
  PlainWriter out;
  out.map(2);
  for (const char* key : {"b", "a"}) {
    out.text(key);
    out.integer(0);
  }
  CHECK_THAT((refused_as<std::map<std::string, int>>(out.take())),
             ContainsSubstring("the keys of a map are not ascending"));
}

}  // namespace stagecraft::wire

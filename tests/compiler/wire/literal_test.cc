/// Tests the literals of operators on the wire.
#include "stagecraft/compiler/wire/literal.h"

#include <string>
#include <vector>

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <c10/util/complex.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::wire {
namespace {

using Catch::Matchers::ContainsSubstring;

c10::IValue read_back(const c10::IValue& literal) {
  Writer out;
  put_literal(out, literal);
  const std::string bytes = out.take();
  Reader in(bytes);
  c10::IValue found = get_literal(in);
  in.end();
  return found;
}

TEST_CASE("WL-1: a literal comes back with its kind and its type", "[compiler][wire]") {
  const std::vector<c10::IValue> literals{
      c10::IValue(),
      true,
      std::int64_t{-5},
      0.5,
      c10::complex<double>(1, -2),
      "text",
      c10::List<bool>({true, false}),
      c10::List<std::int64_t>({1, 2}),
      c10::List<std::int64_t>(),
      c10::List<double>({0.5, -0.5}),
      c10::List<c10::complex<double>>({c10::complex<double>(0, 1)}),
      c10::List<std::string>({"a", ""}),
      c10::List<at::Scalar>({at::Scalar(1), at::Scalar(0.5)}),
      c10::List<std::optional<at::Tensor>>({std::nullopt, std::nullopt})};
  for (const c10::IValue& literal : literals) {
    CAPTURE(literal.tagKind());
    REQUIRE(can_travel(literal));
    const c10::IValue found = read_back(literal);
    CHECK(found.tagKind() == literal.tagKind());
    CHECK(*found.type() == *literal.type());
    CHECK((literal.isNone() || found == literal));
  }
  const c10::IValue absent = read_back(at::Tensor());
  CHECK(absent.isTensor());
  CHECK_FALSE(absent.toTensor().defined());
}

TEST_CASE("WL-1: tensors and devices are no literals", "[compiler][wire]") {
  CHECK_FALSE(can_travel(at::ones({1})));
  CHECK_FALSE(can_travel(c10::Device(at::kCPU)));
  CHECK_FALSE(can_travel(c10::List<at::Tensor>({at::ones({1})})));
}

TEST_CASE("bytes that are no literal are refused", "[compiler][wire][hostile]") {
  const auto refused = [](auto&& write) {
    Writer out;
    out.array(2);
    write(out);
    const std::string bytes = out.take();
    return refusal(
        [&] {
          Reader in(bytes);
          (void)get_literal(in);
        },
        Errc::WireFormat);
  };
  CHECK_THAT(refused([](Writer& out) {
               out.natural(14);
               out.nil();
             }),
             ContainsSubstring("there is no literal of kind 14"));
  CHECK_THAT(refused([](Writer& out) {
               out.natural(0);
               out.integer(1);
             }),
             ContainsSubstring("an absent value has content"));
  CHECK_THAT(refused([](Writer& out) {
               out.natural(8);  // a list of integers
               out.array(1);
               out.text("x");
             }),
             ContainsSubstring("expected an integer, found a text"));
  CHECK_THAT(refused([](Writer& out) {
               out.natural(13);  // a list of absent tensors
               out.array(1);
               out.integer(1);
             }),
             ContainsSubstring("has another element"));
}

}  // namespace
}  // namespace stagecraft::wire

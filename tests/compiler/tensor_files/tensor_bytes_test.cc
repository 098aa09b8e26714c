#include "stagecraft/compiler/tensor_files/tensor_bytes.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

std::string unreadable(const std::string& path) {
  return refusal([&] { const TensorFile file(path); }, Errc::UsageFile);
}

TEST_CASE("a file is read from its beginning to its end", "[compiler][files]") {
  const tests::TemporaryFolder folder;
  TensorFile file(folder.write("x", std::string("head\x05\x00\x07\x00\x09", 9)));
  CHECK(file.size() == 9);
  CHECK(file.text(4) == "head");
  CHECK(file.left() == 5);
  const at::Tensor numbers = file.tensor(at::kShort, {2});
  CHECK(numbers[0].item().toInt() == 5);
  CHECK(numbers[1].item().toInt() == 7);
  CHECK(file.left() == 1);
  CHECK_THAT(refusal([&] { (void)file.text(2); }, Errc::UsageFile),
             EndsWith("x: expected 2 bytes from 8 on, found a file that ends before"));
}

TEST_CASE("a Boolean is 0 or 1 in memory, whatever its byte is", "[compiler][files]") {
  const tests::TemporaryFolder folder;
  TensorFile file(folder.write("x", std::string("\x00\x01\x02\xff", 4)));
  const at::Tensor truths = file.tensor(at::kBool, {4});
  CHECK(truths.scalar_type() == at::kBool);
  const auto* const bytes = static_cast<const std::uint8_t*>(truths.const_data_ptr());
  CHECK(std::vector(bytes, bytes + 4) == std::vector<std::uint8_t>{0, 1, 1, 1});
}

TEST_CASE("what is no file is refused before it is opened", "[compiler][files][bad-input]") {
  const tests::TemporaryFolder folder;
  CHECK_THAT(unreadable(folder.path() + "/none"), EndsWith("/none: expected a file, found none"));
  CHECK_THAT(unreadable(folder.path()), EndsWith("expected a file, found a directory"));
  CHECK(unreadable("/dev/zero") == "/dev/zero: expected a file, found something else");
}

TEST_CASE("TB-1: the bytes of a tensor are known before any is allocated",
          "[compiler][files][bad-input]") {
  const tests::TemporaryFolder folder;
  const TensorFile file(folder.write("x", ""));
  CHECK(file.bytes_of(at::kFloat, {}) == 4);
  CHECK(file.bytes_of(at::kDouble, {2, 3}) == 48);
  CHECK(file.bytes_of(at::kFloat, {0}) == 0);
  CHECK(file.bytes_of(at::kByte, {kLargest}) == static_cast<std::uint64_t>(kLargest));
  CHECK(file.bytes_of(at::kByte, Sizes(64, 1)) == 1);

  const auto refused = [&](at::ScalarType dtype, const Sizes& sizes) {
    return refusal([&] { (void)file.bytes_of(dtype, sizes); }, Errc::UsageFile);
  };
  CHECK_THAT(refused(at::kFloat, {2, -1}), EndsWith("expected sizes from 0 on, found -1"));
  CHECK_THAT(refused(at::kByte, Sizes(65, 1)), EndsWith("at most 64 dimensions, found 65"));
  const auto too_large = ContainsSubstring("expected a shape that memory can have");
  CHECK_THAT(refused(at::kShort, {kLargest}), too_large);
  CHECK_THAT(refused(at::kByte, {kLargest, 2}), too_large);
  CHECK_THAT(refused(at::kByte, {std::int64_t{1} << 32, std::int64_t{1} << 32}), too_large);
  // The strides of an empty tensor must fit too.
  CHECK_THAT(refused(at::kByte, {kLargest, 2, 0}), too_large);
  CHECK_THAT(refused(at::kByte, {0, kLargest, 2}), too_large);
}

TEST_CASE("a tensor is written row after row, however it lies in memory", "[compiler][files]") {
  const at::Tensor wide = at::arange(6, at::kByte).view({2, 3});
  const at::Tensor plain = plain_tensor("w", wide.t());
  CHECK(plain.is_contiguous());
  CHECK(at::equal(plain, wide.t()));
  CHECK(bytes_view(plain) == std::string_view("\x00\x03\x01\x04\x02\x05", 6));
  const at::Tensor trained = at::zeros({2}).set_requires_grad(true);
  CHECK_FALSE(plain_tensor("w", trained).requires_grad());
  const at::Tensor conjugate = at::zeros({2}, at::kComplexFloat).conj();
  CHECK(conjugate.is_conj());
  CHECK_FALSE(plain_tensor("w", conjugate).is_conj());
}

TEST_CASE("a tensor that no file can hold is refused by its name", "[compiler][files][bad-input]") {
  for (const at::Tensor& wrong : {at::Tensor(), at::zeros({2, 2}).to_sparse()}) {
    CHECK_THAT(
        refusal([&] { (void)plain_tensor("layer.weight", wrong); }),
        ContainsSubstring("the tensor layer.weight ") && ContainsSubstring("convert it before"));
  }
}

}  // namespace
}  // namespace stagecraft

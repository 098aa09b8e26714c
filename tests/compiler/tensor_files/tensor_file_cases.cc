#include "stagecraft/tests/compiler/tensor_files/tensor_file_cases.h"

#include <ATen/ops/arange.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::testing {

using Catch::Matchers::ContainsSubstring;

const std::vector<at::ScalarType>& numpy_types() {
  static const std::vector<at::ScalarType> types{at::kBool,
                                                 at::kByte,
                                                 at::kChar,
                                                 at::kShort,
                                                 at::kInt,
                                                 at::kLong,
                                                 at::kHalf,
                                                 at::kFloat,
                                                 at::kDouble,
                                                 at::kComplexFloat,
                                                 at::kComplexDouble};
  return types;
}

at::Tensor counted(at::ScalarType dtype, const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    count *= size;
  }
  return at::arange(count).sub(2).to(dtype).reshape(sizes);
}

bool same_tensor(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.equal(b);
}

void check_refused_files(const std::vector<HostileFile>& files,
                         const std::function<void(const std::string&)>& read) {
  const tests::TemporaryFolder folder;
  for (const HostileFile& file : files) {
    CAPTURE(file.parts);
    const std::string path = folder.write("a", file.bytes);
    const std::string message = refusal([&] { read(path); }, Errc::UsageFile);
    CHECK_THAT(message, ContainsSubstring(path) && ContainsSubstring("expected"));
    for (const std::string& part : file.parts) {
      CHECK_THAT(message, ContainsSubstring(part));
    }
  }
}

}  // namespace stagecraft::testing

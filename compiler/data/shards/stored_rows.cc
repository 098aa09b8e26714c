#include "stagecraft/compiler/data/shards/stored_rows.h"

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

void add_argument(Shard& shard, const StoredTensor& tensor) {
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    throw Error(Errc::UsageFile,
                fmt::format("{}{}: expected {}, found {}",
                            tensor.file,
                            tensor.name.empty() ? "" : fmt::format(", \"{}\"", tensor.name),
                            expected,
                            found));
  };
  if (tensor.sizes.empty()) {
    refuse("samples, one in each row", "a number without dimensions");
  }
  ShardArgument argument{.file = tensor.file,
                         .begin = tensor.begin,
                         .bytes = at::elementSize(tensor.dtype),
                         .dtype = tensor.dtype,
                         .sizes = {tensor.sizes.begin() + 1, tensor.sizes.end()}};
  for (const std::int64_t size : argument.sizes) {
    argument.bytes *= static_cast<std::uint64_t>(size);
  }
  const std::int64_t rows = tensor.sizes.front();
  if (argument.bytes == 0 && rows > 0) {
    refuse("samples of at least one number", "a size of 0");
  }
  if (shard.arguments.empty()) {
    shard.rows = rows;
  } else if (rows != shard.rows) {
    refuse(fmt::format("{}, as {} has them", count_text(shard.rows, "row"), shard.name),
           count_text(rows, "row"));
  }
  shard.arguments.push_back(std::move(argument));
}

}  // namespace stagecraft

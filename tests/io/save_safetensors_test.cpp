// Safetensors files that are written.
#include "safetensors_files.hpp"

#include <treadle/io/file.hpp>

#include <utility>

using namespace treadle;
using namespace treadle::test;
namespace fs = std::filesystem;

BOOST_FIXTURE_TEST_SUITE(save_safetensors, Folder)

BOOST_AUTO_TEST_CASE(writes_what_it_reads) {
  std::vector<io::Tensor> tensors;
  std::vector<NamedTensor> named;
  const std::vector<std::string> names{"z", "flags", "a \"b\"\n", "scalar", "empty", "ids"};
  tensors.emplace_back(f32, std::vector<std::int64_t>{2, 3});
  tensors.emplace_back(boolean, std::vector<std::int64_t>{5});
  tensors.emplace_back(f64, std::vector<std::int64_t>{3});
  tensors.emplace_back(i32, std::vector<std::int64_t>{});
  tensors.emplace_back(f32, std::vector<std::int64_t>{3, 0});
  tensors.emplace_back(i64, std::vector<std::int64_t>{1, 2});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (std::size_t j = 0; j < tensors[i].data.size(); ++j)
      tensors[i].data[j] = static_cast<std::byte>(tensors[i].dtype == boolean ? j % 2 : (i + 1) * j % 120);
    named.push_back({names[i], tensors[i].view()});
  }
  const fs::path file = path / "out.safetensors";
  io::save_safetensors(file, named, {{"format", "pt"}, {"ü", "\"\\"}});
  const io::Safetensors s = io::Safetensors::open(file);
  BOOST_CHECK_EQUAL(s.tensors().size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const io::StoredTensor* t = s.find(names[i]);
    BOOST_REQUIRE(t != nullptr);
    BOOST_CHECK(io::to_tensor(*t).dtype == tensors[i].dtype && t->shape == tensors[i].shape);
    BOOST_CHECK(io::to_tensor(*t).data == tensors[i].data);
    BOOST_CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(t->bytes.data()) % io::size_of(t->type), 0);
  }
  BOOST_CHECK_EQUAL(s.metadata().at("ü"), "\"\\");

  TensorView transposed = tensors[0].view();
  std::swap(transposed.shape[0], transposed.shape[1]);
  std::swap(transposed.strides[0], transposed.strides[1]);
  const NamedTensor one{"t", transposed};
  io::save_safetensors(file, std::span(&one, 1));
  const io::Tensor back = io::to_tensor(*io::Safetensors::open(file).find("t"));
  BOOST_CHECK((back.shape == std::vector<std::int64_t>{3, 2}));
  BOOST_CHECK(back.as<std::uint32_t>()[1] == tensors[0].as<std::uint32_t>()[3]);
  io::save_safetensors(file, {});
  BOOST_CHECK(io::Safetensors::open(file).tensors().empty());
}

BOOST_AUTO_TEST_CASE(a_failed_write_leaves_the_old_file) {
  const fs::path file = write("out.safetensors", "old");
  io::Tensor t(f32, {1});
  const auto saving = [&](std::vector<NamedTensor> tensors, std::map<std::string, std::string> metadata = {}) {
    return [=] { io::save_safetensors(file, tensors, metadata); };
  };
  refuses(saving({{"w", t.view()}, {"w", t.view()}}), "out.safetensors: cannot be written: two tensors are named 'w'");
  refuses(saving({{"__metadata__", t.view()}}), "a tensor is named '__metadata__'");
  refuses(saving({{"\xff", t.view()}}), "the tensor's name '\\xff' is no UTF-8");
  refuses(saving({{"w", TensorView{.rank = 1, .shape = {1}}}}), "the tensor 'w' is not given");
  refuses(saving({}, {{"\xff", ""}}), "the metadata key '\\xff' is no UTF-8");
  refuses(saving({}, {{"a", "\xff"}}), "the metadata value '\\xff' is no UTF-8");
  refuses([&] { io::save_safetensors(path / "none" / "x", {}); }, "cannot be written");
  BOOST_CHECK_EQUAL(io::read_text(file), "old");
}

BOOST_AUTO_TEST_SUITE_END()

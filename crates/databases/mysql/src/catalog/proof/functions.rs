//! Lists the words that a parenthesis may follow.

/// Functions that return the same with other writes in the transaction as without, and that change
/// nothing: their value depends on their arguments, the time, chance, the user or the database.
const FUNCTIONS: &str = " abs acos adddate addtime aes_decrypt aes_encrypt ascii asin atan atan2 avg_row_length \
bin bin_to_uuid bit_count bit_length cast ceil ceiling char char_length character_length charset chr coalesce coercibility \
collation compress concat concat_ws conv convert convert_tz cos cot crc32 crc32c curdate current_date current_time \
current_timestamp current_user curtime database date date_add date_format date_sub datediff day dayname dayofmonth dayofweek \
dayofyear degrees elt exp export_set extract field find_in_set floor format format_bytes from_base64 from_days from_unixtime \
greatest hex hour if ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa insert instr is_ipv4 is_ipv4_compat is_ipv4_mapped \
is_ipv6 is_uuid isnull json_array json_array_append json_array_insert json_arrayagg json_compact json_contains \
json_contains_path json_depth json_detailed json_equals json_exists json_extract json_insert json_keys json_length json_loose \
json_merge json_merge_patch json_merge_preserve json_normalize json_object json_overlaps json_pretty json_query json_quote \
json_remove json_replace json_schema_valid json_search json_set json_type json_unquote json_valid json_value last_day lcase \
least left length lengthb ln localtime localtimestamp locate log log10 log2 lower lpad ltrim make_set makedate maketime md5 \
microsecond mid minute mod month monthname natural_sort_key nextval now nullif nvl nvl2 oct octet_length ord period_add \
period_diff pi position pow power quarter quote radians rand random_bytes regexp_instr regexp_like regexp_replace \
regexp_substr repeat replace reverse right round rpad rtrim schema sec_to_time second session_user sformat sha sha1 sha2 \
sign sin soundex space sqrt st_area st_asbinary st_asgeojson st_astext st_centroid st_contains st_distance \
st_distance_sphere st_envelope st_geohash st_geomfromgeojson st_geomfromtext st_geomfromwkb st_intersects st_isvalid \
st_latitude st_length st_linefromtext st_longitude st_pointfromtext st_polyfromtext st_srid st_within st_x st_y point \
str_to_date strcmp subdate substr substring substring_index subtime sysdate system_user tan time time_format time_to_sec \
timediff timestamp timestampadd timestampdiff to_base64 to_char to_days to_seconds trim truncate ucase uncompress \
uncompressed_length unhex unix_timestamp upper user utc_date utc_time utc_timestamp uuid uuid_short uuid_to_bin uuid_v4 uuid_v7 version week \
weekday weekofyear weight_string year yearweek ";

/// Words of a table's definition that a parenthesis may follow.
const DEFINING: &str = " always and array as bigint binary bit blob by case char character check columns constraint date datetime \
dec decimal default distinct div double else enum escape exists fixed float foreign from geometry geometrycollection hash in \
index int integer inet4 inet6 interval is json key like linear linestring list longblob longtext mediumblob mediumint \
mediumtext member mod multilinestring multipoint multipolygon nchar not null numeric nvarchar of on or partition partitions \
point polygon primary range real references regexp rlike set signed smallint spatial subpartition system_time text than then \
time timestamp tinyblob tinyint tinytext unique unsigned update using uuid value values varbinary varchar vector when xor \
year zerofill ";

/// Words that may stand in the expressions of a trigger.
const EXPRESSING: &str = " and as asc between binary both by case char character cross current_date current_time \
current_timestamp current_user date datetime day day_hour day_microsecond day_minute day_second decimal distinct div double \
else end escape false float for from hour hour_microsecond hour_minute hour_second in integer interval is leading like \
localtime localtimestamp microsecond minute minute_microsecond minute_second mod month not null or quarter regexp rlike \
second second_microsecond signed sounds then time timestamp trailing true unknown unsigned utc_date utc_time utc_timestamp \
week when xor year year_month ";

pub(super) fn is_function(name: &str) -> bool {
    has(FUNCTIONS, name)
}

pub(super) fn defines(word: &str) -> bool {
    has(DEFINING, word)
}

pub(super) fn expresses(word: &str) -> bool {
    has(EXPRESSING, word)
}

fn has(words: &str, word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    words.split_ascii_whitespace().any(|known| known == word)
}

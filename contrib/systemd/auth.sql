-- The verifiers of roles for Windrow's auth_query, for a role that may not read pg_shadow.
CREATE FUNCTION public.windrow_auth(role text)
RETURNS TABLE (usename name, passwd text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS
'SELECT s.usename, s.passwd FROM pg_shadow s WHERE s.usename = role AND NOT s.usesuper';
REVOKE ALL ON FUNCTION public.windrow_auth(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.windrow_auth(text) TO app;
